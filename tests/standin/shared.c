/* The section of memory between the programs. */
#include "shared.h"
#include "standin.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMMANDS = 256, ROOM = 96 << 20 };

struct section {
    volatile LONG commands; /* how many are whole */
    volatile LONG flags;
    volatile LONG64 used;   /* bytes of whole events */
    struct command command[COMMANDS];
    uint8_t events[ROOM];
};

/* An event in the section; its payload follows. */
struct record { size_t size; struct event event; };

static struct section *section;
static HANDLE mutex;

int shared(void) {
    static LONG state; /* 1: somebody opens it, 2: done */
    const char *name = getenv("STANDIN_SHARED");
    if (!name || !*name) return 0;
    if (InterlockedCompareExchange(&state, 1, 0) == 0) {
        char text[300];
        snprintf(text, sizeof text, "%s-section", name);
        HANDLE memory = CreateFileMappingA(INVALID_HANDLE_VALUE, 0, PAGE_READWRITE, 0, sizeof *section, text);
        section = memory ? MapViewOfFile(memory, FILE_MAP_ALL_ACCESS, 0, 0, 0) : 0;
        snprintf(text, sizeof text, "%s-mutex", name);
        mutex = CreateMutexA(0, FALSE, text);
        InterlockedExchange(&state, 2);
    }
    while (state != 2) Sleep(0);
    return section && mutex;
}

void shared_enable(const GUID *provider, ULONG code, UCHAR level, ULONGLONG any, ULONGLONG all, const ULONG *pids, int count) {
    if (!shared()) return;
    WaitForSingleObject(mutex, INFINITE);
    if (section->commands < COMMANDS) {
        struct command *command = &section->command[section->commands];
        *command = (struct command){.provider = *provider, .code = code, .level = level, .any = any, .all = all};
        command->pid_count = count < 8 ? count : 8;
        for (int i = 0; i < command->pid_count; i++) command->pids[i] = pids[i];
        InterlockedIncrement(&section->commands);
    }
    ReleaseMutex(mutex);
}

void shared_flags(ULONG flags) {
    if (shared()) InterlockedExchange(&section->flags, (LONG)flags);
}

ULONG shared_kernel_flags(void) { return shared() ? (ULONG)section->flags : 0; }

LONG shared_commands(void) { return shared() ? section->commands : 0; }

int shared_command(LONG number, struct command *command) {
    *command = section->command[number];
    if (!command->pid_count) return 1;
    for (int i = 0; i < command->pid_count; i++)
        if (command->pids[i] == GetCurrentProcessId()) return 1;
    return 0;
}

void shared_put(struct event event, const void *payload, size_t size) {
    if (!shared() || size > 65535) return;
    LARGE_INTEGER now;
    struct record record = {.size = (sizeof record + size + 15) & ~(size_t)15, .event = event};
    WaitForSingleObject(mutex, INFINITE);
    if (section->used + (LONG64)record.size <= ROOM) {
        uint8_t *at = section->events + section->used;
        if (!record.event.time) {
            QueryPerformanceCounter(&now);
            record.event.time = now.QuadPart;
        }
        record.event.payload_size = (uint16_t)size;
        memcpy(at, &record, sizeof record);
        memcpy(at + sizeof record, payload, size);
        InterlockedExchange64(&section->used, section->used + (LONG64)record.size);
    }
    ReleaseMutex(mutex);
}

int shared_next(int kernel, LONG64 *at, struct event *event) {
    while (shared() && *at < section->used) {
        struct record *record = (struct record *)(section->events + *at);
        *at += (LONG64)record->size;
        if ((record->event.kind == KIND_KERNEL) != (kernel != 0)) continue;
        *event = record->event;
        event->payload = (uint8_t *)(record + 1);
        return 1;
    }
    return 0;
}
