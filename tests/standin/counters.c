/* Performance counters: STANDIN_COUNTERS names a dump of etwprof (16 bytes, then sections of four letters, four zeros, a
   length of 8 bytes, and so many bytes), whose names and blocks are handed out as HKEY_PERFORMANCE_DATA, a block for each query.
   Wine's own puts objects at a wrong place. */
#include "standin.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static BYTE *dump;
static size_t dump_size;

static int read_dump(void) {
    static int once;
    const char *path = getenv("STANDIN_COUNTERS");
    FILE *file;
    if (once++) return dump != 0;
    if (!path || !(file = fopen(path, "rb"))) return 0;
    fseek(file, 0, SEEK_END);
    dump_size = (size_t)ftell(file);
    rewind(file);
    dump = malloc(dump_size);
    if (fread(dump, 1, dump_size, file) != dump_size) dump = 0;
    fclose(file);
    return dump != 0;
}

/* The nth section of a kind, or the last. */
static BYTE *section(const char *kind, int nth, size_t *size) {
    BYTE *found = 0;
    for (size_t at = 16; at + 16 <= dump_size;) {
        size_t length = *(size_t *)(dump + at + 8);
        if (!memcmp(dump + at, kind, 4)) {
            found = dump + at + 16;
            *size = length;
            if (!nth--) break;
        }
        at += 16 + length;
    }
    return found;
}

/* Answers a query, if it is played. */
int counters_query(LPCWSTR name, LPDWORD type, LPBYTE data, LPDWORD size, LONG *answer) {
    static int queries;
    char arguments[200];
    size_t length = 0;
    int is_names = name && !_wcsnicmp(name, L"Counter", 7);
    if (!read_dump()) return 0;
    BYTE *found = section(is_names ? "NAME" : "DATA", is_names ? 0 : queries, &length);
    *answer = found ? 0 : ERROR_FILE_NOT_FOUND;
    if (!*answer && length > *size) {
        *answer = ERROR_MORE_DATA;
        *size = 0; /* undefined, by the documentation */
    } else if (!*answer) {
        memcpy(data, found, length);
        *size = (DWORD)length;
        if (type) *type = is_names ? REG_MULTI_SZ : REG_BINARY;
        if (!is_names) queries++;
    }
    snprintf(arguments, sizeof arguments, "\"what\":\"%ls\"", name ? name : L"");
    call_log("counters.query", arguments, (ULONG)*answer);
    return 1;
}

API LONG WINAPI RegCloseKey(HKEY key) {
    if (key == HKEY_PERFORMANCE_DATA && read_dump()) {
        call_log("counters.close", "", 0);
        return 0;
    }
    return REAL(RegCloseKey)(key);
}
