/* An advapi32 that writes what is done with HKEY_PERFORMANCE_DATA to the file WATCH_LOG, and passes everything on to Wine's,
   which lies beside it as advreal.dll. */
#include <stdio.h>
#include <stdlib.h>
#include <windows.h>

#define API __declspec(dllexport)

static FARPROC real(const char *name) {
    static HMODULE library;
    if (!library) library = LoadLibraryA("advreal.dll");
    return GetProcAddress(library, name);
}

static void note(const char *call, LPCWSTR what, DWORD room, LONG answer) {
    const char *path = getenv("WATCH_LOG");
    FILE *file = path ? fopen(path, "a") : 0;
    if (!file) return;
    fprintf(file, "%lu %s %lu %ld %ls\n", GetCurrentProcessId(), call, room, answer, what ? what : L"-");
    fclose(file);
}

typedef LONG(WINAPI *query)(HKEY, LPCWSTR, LPDWORD, LPDWORD, LPBYTE, LPDWORD);
typedef LONG(WINAPI *closing)(HKEY);

API LONG WINAPI RegQueryValueExW(HKEY key, LPCWSTR name, LPDWORD reserved, LPDWORD type, LPBYTE data, LPDWORD size) {
    DWORD room = size ? *size : 0;
    LONG answer = ((query)real("RegQueryValueExW"))(key, name, reserved, type, data, size);
    if (key == HKEY_PERFORMANCE_DATA) note("query", name, room, answer);
    return answer;
}

API LONG WINAPI RegCloseKey(HKEY key) {
    LONG answer = ((closing)real("RegCloseKey"))(key);
    if (key == HKEY_PERFORMANCE_DATA) note("close", 0, 0, answer);
    return answer;
}
