// Inserts the rows of a queue's database into a new database with the same schema and settings, in one transaction. The rate of these inserts is an
// upper bound for the rate of any queue that uses SQLite. Prints the duration of the inserts and the commit in seconds, and the number of rows.
//
//   raw-inserts STORE.sqlite NEW.sqlite
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
    sqlite3_stmt *insert;
    int columns;
    sqlite3_value **values;
    size_t count, capacity;
} Table;

static void check(int code, sqlite3 *db) {
    if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE) return;
    fprintf(stderr, "raw-inserts: %s\n", sqlite3_errmsg(db));
    exit(1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: raw-inserts STORE.sqlite NEW.sqlite\n");
        return 2;
    }
    sqlite3 *from, *to;
    check(sqlite3_open_v2(argv[1], &from, SQLITE_OPEN_READONLY, NULL), from);
    check(sqlite3_open(argv[2], &to), to);
    check(sqlite3_exec(to, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;", NULL, NULL, NULL), to);

    sqlite3_stmt *schema;
    check(sqlite3_prepare_v2(from, "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid", -1, &schema, NULL), from);
    while (sqlite3_step(schema) == SQLITE_ROW) check(sqlite3_exec(to, (const char *)sqlite3_column_text(schema, 0), NULL, NULL, NULL), to);
    sqlite3_finalize(schema);

    // Use an order that satisfies the foreign keys.
    const char *names[] = {"account", "session", "schedule", "session_tag", "directory", "item", "file", "setting", "event"};
    enum { tables = sizeof names / sizeof *names };
    Table table[tables] = {0};
    long rows = 0;
    for (int index = 0; index < tables; index++) {
        char sql[256];
        sqlite3_stmt *select;
        snprintf(sql, sizeof sql, "SELECT * FROM %s", names[index]);
        check(sqlite3_prepare_v2(from, sql, -1, &select, NULL), from);
        Table *target = &table[index];
        target->columns = sqlite3_column_count(select);
        while (sqlite3_step(select) == SQLITE_ROW) {
            if (target->count + (size_t)target->columns > target->capacity) {
                target->capacity = target->capacity * 2 + 1024;
                target->values = realloc(target->values, target->capacity * sizeof *target->values);
            }
            for (int column = 0; column < target->columns; column++)
                target->values[target->count++] = sqlite3_value_dup(sqlite3_column_value(select, column));
            rows++;
        }
        sqlite3_finalize(select);
        int length = snprintf(sql, sizeof sql, "INSERT INTO %s VALUES (?", names[index]);
        for (int column = 1; column < target->columns; column++) length += snprintf(sql + length, sizeof sql - (size_t)length, ", ?");
        snprintf(sql + length, sizeof sql - (size_t)length, ")");
        check(sqlite3_prepare_v2(to, sql, -1, &target->insert, NULL), to);
    }

    double start = now();
    check(sqlite3_exec(to, "BEGIN IMMEDIATE", NULL, NULL, NULL), to);
    for (int index = 0; index < tables; index++) {
        Table *target = &table[index];
        for (size_t first = 0; first < target->count; first += (size_t)target->columns) {
            for (int column = 0; column < target->columns; column++)
                check(sqlite3_bind_value(target->insert, column + 1, target->values[first + (size_t)column]), to);
            check(sqlite3_step(target->insert), to);
            sqlite3_reset(target->insert);
        }
    }
    check(sqlite3_exec(to, "COMMIT", NULL, NULL, NULL), to);
    printf("%.6f %ld\n", now() - start, rows);
    return 0;
}
