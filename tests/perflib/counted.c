/* A DLL with performance counters, as Windows loads them: the registry names one of each kind of function below. What is
   called goes to the file COUNTED_LOG. With NEVER_LOADS it refuses to be loaded. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>
#include <winperf.h>

#define API __declspec(dllexport) DWORD WINAPI

/* What it counts: one object without instances, one counter. */
struct data {
    PERF_OBJECT_TYPE object;
    PERF_COUNTER_DEFINITION counter;
    PERF_COUNTER_BLOCK block;
    DWORD value;
};

static void note(const char *call, LPCWSTR what, DWORD room) {
    const char *path = getenv("COUNTED_LOG");
    FILE *file = path ? fopen(path, "a") : 0;
    if (!file) return;
    fprintf(file, "%lu %s %lu %ls\n", GetCurrentProcessId(), call, room, what ? what : L"-");
    fclose(file);
}

static void crash(void) {
    *(volatile int *)16 = 1;
}

API OpenGood(LPWSTR devices) {
    note("open", devices, 0);
    return 0;
}

API OpenCrash(LPWSTR devices) {
    note("open", devices, 0);
    crash();
    return 0;
}

API OpenError(LPWSTR devices) {
    note("open", devices, 0);
    return ERROR_NOT_READY;
}

static DWORD give(LPCWSTR what, LPVOID *at, LPDWORD bytes, LPDWORD objects, DWORD length) {
    struct data data;
    note("collect", what, *bytes);
    if (*bytes < length) {
        *bytes = *objects = 0;
        return ERROR_MORE_DATA;
    }
    memset(&data, 0, sizeof data);
    data.object.TotalByteLength = length;
    data.object.DefinitionLength = sizeof data.object + sizeof data.counter;
    data.object.HeaderLength = sizeof data.object;
    data.object.ObjectNameTitleIndex = 3000;
    data.object.ObjectHelpTitleIndex = 3001;
    data.object.NumCounters = 1;
    data.object.NumInstances = PERF_NO_INSTANCES;
    data.counter.ByteLength = sizeof data.counter;
    data.counter.CounterNameTitleIndex = 3002;
    data.counter.CounterHelpTitleIndex = 3003;
    data.counter.CounterType = PERF_COUNTER_RAWCOUNT;
    data.counter.CounterSize = 4;
    data.counter.CounterOffset = 4;
    data.block.ByteLength = 8;
    data.value = 42;
    memset(*at, 0, length);
    memcpy(*at, &data, sizeof data);
    *at = (char *)*at + length;
    *bytes = length;
    *objects = 1;
    return 0;
}

#define SMALL ((sizeof(struct data) + 7) / 8 * 8)
#define BIG (3 << 20)

API CollectGood(LPWSTR what, LPVOID *at, LPDWORD bytes, LPDWORD objects) {
    return give(what, at, bytes, objects, SMALL);
}

/* Needs more room than it is given at first. */
API CollectBig(LPWSTR what, LPVOID *at, LPDWORD bytes, LPDWORD objects) {
    return give(what, at, bytes, objects, BIG);
}

API CollectCrash(LPWSTR what, LPVOID *at, LPDWORD bytes, LPDWORD objects) {
    note("collect", what, *bytes);
    crash();
    return 0;
}

API CollectHang(LPWSTR what, LPVOID *at, LPDWORD bytes, LPDWORD objects) {
    note("collect", what, *bytes);
    Sleep(INFINITE);
    return 0;
}

API CollectError(LPWSTR what, LPVOID *at, LPDWORD bytes, LPDWORD objects) {
    note("collect", what, *bytes);
    *bytes = *objects = 0;
    return ERROR_ACCESS_DENIED;
}

/* Ends the process without a crash. */
API CollectExit(LPWSTR what, LPVOID *at, LPDWORD bytes, LPDWORD objects) {
    note("collect", what, *bytes);
    ExitProcess(3);
}

/* Writes eight bytes behind the room that it has. */
API CollectOverrun(LPWSTR what, LPVOID *at, LPDWORD bytes, LPDWORD objects) {
    memset((char *)*at + *bytes, 7, 8);
    return give(what, at, bytes, objects, SMALL);
}

/* Says that there are two objects. */
API CollectLengths(LPWSTR what, LPVOID *at, LPDWORD bytes, LPDWORD objects) {
    DWORD code = give(what, at, bytes, objects, SMALL);
    *objects = 2;
    return code;
}

API CloseGood(void) {
    note("close", 0, 0);
    return 0;
}

API CloseCrash(void) {
    note("close", 0, 0);
    crash();
    return 0;
}

BOOL WINAPI DllMain(HINSTANCE module, DWORD reason, LPVOID reserved) {
#ifdef NEVER_LOADS
    return FALSE;
#else
    return TRUE;
#endif
}
