/* The call log and the faults. */
#include "standin.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static CRITICAL_SECTION lock;
static FILE *log_file;

static void open_log(void) {
    static LONG once;
    if (InterlockedCompareExchange(&once, 1, 0) == 0) {
        const char *path = getenv("STANDIN_LOG");
        InitializeCriticalSection(&lock);
        if (path) log_file = fopen(path, "a");
        InterlockedExchange(&once, 2);
    }
    while (once != 2) Sleep(0);
}

void call_log(const char *call, const char *arguments, ULONG answer) {
    open_log();
    if (!log_file) return;
    EnterCriticalSection(&lock);
    fprintf(log_file, "{\"call\":\"%s\"%s%s,\"answer\":%lu}\n", call, *arguments ? "," : "", arguments, answer);
    fflush(log_file);
    LeaveCriticalSection(&lock);
}

/* What `setting`, "NAME[.DETAIL][@N]=VALUE;...", says for this call: for the Nth (from 1), or for all. */
static ULONG said(const char *setting, const char *call, const char *detail) {
    static struct { char name[96]; int count; } counts[64];
    static int used;
    const char *faults = getenv(setting);
    char full[96], name[96];
    ULONG answer = 0;
    if (!faults) return 0;
    open_log();
    EnterCriticalSection(&lock);
    snprintf(full, sizeof full, "%s.%s", call, detail);
    char *copy = strdup(faults), *rest = copy, *fault;
    while ((fault = strtok_s(rest, ";", &rest))) {
        char *value = strchr(fault, '=');
        if (!value) continue;
        *value++ = 0;
        snprintf(name, sizeof name, "%s:%s", setting, fault);
        char *nth = strchr(fault, '@');
        if (nth) *nth++ = 0;
        if (strcmp(fault, call) && strcmp(fault, full)) continue;
        int i = 0;
        while (i < used && strcmp(counts[i].name, name)) i++;
        if (i == used) {
            if (used == 64) continue;
            strcpy(counts[used++].name, name);
        }
        counts[i].count++;
        if (!nth || atoi(nth) == counts[i].count) answer = strtoul(value, 0, 0);
    }
    free(copy);
    LeaveCriticalSection(&lock);
    return answer;
}

ULONG injected(const char *call, const char *detail) {
    char arguments[128];
    ULONG pause = said("STANDIN_PAUSE", call, detail);
    if (pause) {
        snprintf(arguments, sizeof arguments, "\"of\":\"%s\",\"detail\":\"%s\"", call, detail);
        call_log("pause", arguments, 0);
        Sleep(pause);
    }
    return said("STANDIN_FAIL", call, detail);
}

FARPROC real(const char *name) {
    static HMODULE library;
    if (!library) library = LoadLibraryA("advreal.dll");
    return GetProcAddress(library, name);
}
