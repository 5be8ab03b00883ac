/* A program for the checks to profile. `target wait SECONDS` says its id and start, then waits; `target sleep SECONDS`
   only waits; `target child SECONDS` starts that and ends; `target echo CODE` copies stdin to stdout, says something on stderr and ends with CODE;
   `target linger CODE` says something on stderr, goes on for a while and ends with CODE; `target say TEXT` says it on stdout;
   `target count NAME` says how many programs of that name run. */
#include <windows.h>
#include <tlhelp32.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void introduce(void) {
    FILETIME created, other;
    GetProcessTimes(GetCurrentProcess(), &created, &other, &other, &other);
    printf("%lu %llx\n", GetCurrentProcessId(), (unsigned long long)created.dwHighDateTime << 32 | created.dwLowDateTime);
    fflush(stdout);
}

static void child(char *program, const char *seconds) {
    char line[600];
    STARTUPINFOA start = {.cb = sizeof start};
    PROCESS_INFORMATION process;
    snprintf(line, sizeof line, "\"%s\" sleep %s", program, seconds);
    CreateProcessA(program, line, 0, 0, TRUE, 0, 0, 0, &start, &process);
}

static int count(const char *name) {
    HANDLE snapshot = CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0);
    PROCESSENTRY32 entry = {.dwSize = sizeof entry};
    int found = 0;
    for (BOOL more = Process32First(snapshot, &entry); more; more = Process32Next(snapshot, &entry)) found += !_stricmp(entry.szExeFile, name);
    return found;
}

int main(int number, char **arguments) {
    if (number != 3) return 2;
    char program[512];
    GetModuleFileNameA(0, program, sizeof program);
    const char *what = arguments[1], *how = arguments[2];
    if (!strcmp(what, "wait")) introduce();
    if (!strcmp(what, "wait") || !strcmp(what, "sleep")) Sleep(atoi(how) * 1000);
    else if (!strcmp(what, "child")) child(program, how);
    else if (!strcmp(what, "count")) printf("%d\n", count(how));
    else if (!strcmp(what, "say")) {
        printf("%s\n", how);
        fflush(stdout);
        Sleep(1500);
    } else if (!strcmp(what, "linger")) {
        fprintf(stderr, "target was here\n");
        Sleep(2500);
        return atoi(how);
    } else if (!strcmp(what, "echo")) {
        int byte;
        while ((byte = getchar()) != EOF) putchar(byte);
        fprintf(stderr, "target was here\n");
        return atoi(how);
    }
    return 0;
}
