// The C interface of PostgreSQL, libpq.
#ifndef CPOSTGRES_SHIM_H
#define CPOSTGRES_SHIM_H

// Debian's path comes first, so that no other target needs the flags of pkg-config.
#if __has_include(<postgresql/libpq-fe.h>)
#include <postgresql/libpq-fe.h>
#else
#include <libpq-fe.h>
#endif

#endif
