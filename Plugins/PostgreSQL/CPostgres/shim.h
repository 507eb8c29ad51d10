// The C interface of PostgreSQL, libpq.
#ifndef CPOSTGRES_SHIM_H
#define CPOSTGRES_SHIM_H

// On Debian, the header is in a subfolder. With this path, no target needs flags from pkg-config.
#if __has_include(<postgresql/libpq-fe.h>)
#include <postgresql/libpq-fe.h>
#else
#include <libpq-fe.h>
#endif

#endif
