// Changes one small row of a database in each of COUNT durable transactions, with the database settings of a queue. The result is the
// time that SQLite and the disk alone need for a durable change. Prints the median and the 99th percentile, in milliseconds.
//
//   raw-commits NEW.sqlite COUNT
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void check(int code, sqlite3 *db) {
    if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE) return;
    fprintf(stderr, "raw-commits: %s\n", sqlite3_errmsg(db));
    exit(1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

static int compare(const void *left, const void *right) {
    double difference = *(const double *)left - *(const double *)right;
    return (difference > 0) - (difference < 0);
}

int main(int argc, char **argv) {
    int count = argc == 3 ? atoi(argv[2]) : 0;
    if (count < 1) {
        fprintf(stderr, "usage: raw-commits NEW.sqlite COUNT\n");
        return 2;
    }
    sqlite3 *db;
    sqlite3_stmt *update;
    double *samples = malloc((size_t)count * sizeof *samples);
    if (!samples) return 1;
    check(sqlite3_open(argv[1], &db), db);
    const char *schema =
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE place(key INTEGER PRIMARY KEY, rank INTEGER NOT NULL);"
        "WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < 10000) INSERT INTO place SELECT value, value FROM n";
    check(sqlite3_exec(db, schema, NULL, NULL, NULL), db);
    check(sqlite3_prepare_v2(db, "UPDATE place SET rank = rank + 1 WHERE key = ?", -1, &update, NULL), db);
    for (int index = 0; index < count; index++) {
        double start = now();
        sqlite3_bind_int(update, 1, rand() % 10000 + 1);
        check(sqlite3_step(update), db);
        check(sqlite3_reset(update), db);
        samples[index] = now() - start;
    }
    qsort(samples, (size_t)count, sizeof *samples, compare);
    printf("p50 %.6f\np99 %.6f\n", samples[count / 2], samples[count * 99 / 100]);
    return 0;
}
