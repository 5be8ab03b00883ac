/* An event log with the events of the file EVENTS, a line of XML for each. Wine has none. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#define API __declspec(dllexport)

static FILE *events;

API HANDLE WINAPI EvtQuery(HANDLE session, LPCWSTR path, LPCWSTR query, DWORD flags) {
    const char *file = getenv("EVENTS");
    if (session || wcscmp(path, L"Application") || !wcsstr(query, L"EventID >= 1000") || flags != 1 || !file
        || !(events = fopen(file, "r"))) {
        SetLastError(15007); /* ERROR_EVT_CHANNEL_NOT_FOUND */
        return 0;
    }
    return (HANDLE)1;
}

API BOOL WINAPI EvtNext(HANDLE results, DWORD room, HANDLE *found, DWORD timeout, DWORD flags, PDWORD count) {
    static char line[1 << 16];
    if (results != (HANDLE)1 || room != 1 || !fgets(line, sizeof line, events)) {
        *count = 0;
        SetLastError(ERROR_NO_MORE_ITEMS);
        return FALSE;
    }
    *found = strdup(line);
    *count = 1;
    return TRUE;
}

API BOOL WINAPI EvtRender(HANDLE context, HANDLE event, DWORD flags, DWORD room, PVOID to, PDWORD used, PDWORD count) {
    int length = MultiByteToWideChar(CP_UTF8, 0, (char *)event, -1, 0, 0);
    *used = 2 * length;
    *count = 0;
    if (room < *used) {
        SetLastError(ERROR_INSUFFICIENT_BUFFER);
        return FALSE;
    }
    MultiByteToWideChar(CP_UTF8, 0, (char *)event, -1, to, length);
    return TRUE;
}

API BOOL WINAPI EvtClose(HANDLE handle) {
    if (handle != (HANDLE)1) free(handle);
    return TRUE;
}
