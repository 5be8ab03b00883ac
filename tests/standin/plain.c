/* Calls that Wine does well: accounts, tokens, the registry. Here they can be logged, can fail, and know accounts that
   this machine has not. At its end the program tells what is stored about rights. */
#include "standin.h"
#include <sddl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The answer that is wanted for the call, or 0. With STANDIN_PLAIN set the call is logged, with what it is for. Calls of
   Wine's own libraries are neither. */
static ULONG asked_by(void *caller, const char *call, const WCHAR *what) {
    char arguments[400];
    ULONG answer;
    HMODULE module = 0;
    int length;
    GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT, caller, &module);
    if (module != GetModuleHandleW(0)) return 0;
    answer = injected(call, "");
    if (!answer && !getenv("STANDIN_PLAIN")) return 0;
    snprintf(arguments, sizeof arguments - 1, "\"object\":\"%ls", what ? what : L"");
    for (length = 0; arguments[length]; length++)
        if (arguments[length] == '\\') arguments[length] = '/';
    strcpy(arguments + length, "\"");
    call_log(call, arguments, answer);
    SetLastError(answer);
    return answer;
}

#define asked(call, what) asked_by(__builtin_return_address(0), call, what)

API LONG WINAPI RegOpenKeyExW(HKEY key, LPCWSTR name, DWORD options, REGSAM access, PHKEY result) {
    ULONG answer = asked("RegOpenKeyExW", name);
    return answer ? (LONG)answer : REAL(RegOpenKeyExW)(key, name, options, access, result);
}

API LONG WINAPI RegQueryValueExW(HKEY key, LPCWSTR name, LPDWORD reserved, LPDWORD type, LPBYTE data, LPDWORD size) {
    ULONG answer = asked("RegQueryValueExW", name);
    LONG played;
    if (!answer && key == HKEY_PERFORMANCE_DATA && counters_query(name, type, data, size, &played)) return played;
    return answer ? (LONG)answer : REAL(RegQueryValueExW)(key, name, reserved, type, data, size);
}

API LONG WINAPI RegEnumKeyExW(HKEY key, DWORD index, LPWSTR name, LPDWORD room, LPDWORD reserved, LPWSTR class, LPDWORD length,
                              PFILETIME written) {
    ULONG answer = asked("RegEnumKeyExW", 0);
    return answer ? (LONG)answer : REAL(RegEnumKeyExW)(key, index, name, room, reserved, class, length, written);
}

API LONG WINAPI RegCreateKeyExW(HKEY key, LPCWSTR name, DWORD reserved, LPWSTR class, DWORD options, REGSAM access,
                                LPSECURITY_ATTRIBUTES security, PHKEY result, LPDWORD disposition) {
    ULONG answer = asked("RegCreateKeyExW", name);
    return answer ? (LONG)answer
                  : REAL(RegCreateKeyExW)(key, name, reserved, class, options, access, security, result, disposition);
}

API LONG WINAPI RegSetValueExW(HKEY key, LPCWSTR name, DWORD reserved, DWORD type, const BYTE *data, DWORD size) {
    ULONG answer = asked("RegSetValueExW", name);
    return answer ? (LONG)answer : REAL(RegSetValueExW)(key, name, reserved, type, data, size);
}

API LONG WINAPI RegDeleteValueW(HKEY key, LPCWSTR name) {
    ULONG answer = asked("RegDeleteValueW", name);
    return answer ? (LONG)answer : REAL(RegDeleteValueW)(key, name);
}

API LONG WINAPI RegDeleteTreeW(HKEY key, LPCWSTR name) {
    ULONG answer = asked("RegDeleteTreeW", name);
    return answer ? (LONG)answer : REAL(RegDeleteTreeW)(key, name);
}

API BOOL WINAPI OpenProcessToken(HANDLE process, DWORD access, PHANDLE token) {
    return !asked("OpenProcessToken", 0) && REAL(OpenProcessToken)(process, access, token);
}

API BOOL WINAPI GetTokenInformation(HANDLE token, TOKEN_INFORMATION_CLASS class, LPVOID data, DWORD size, PDWORD needed) {
    *needed = 0;
    if (asked("GetTokenInformation", 0)) return FALSE;
    if (class == TokenElevationType) {
        /* B-uac-filter: User Account Control makes an administrator's tokens full and limited ones. Wine has none. */
        const char *elevation = getenv("STANDIN_ELEVATION");
        int kind = !elevation ? TokenElevationTypeDefault : strcmp(elevation, "full") ? TokenElevationTypeLimited : TokenElevationTypeFull;
        memcpy(data, &kind, *needed = sizeof kind);
        return TRUE;
    }
    BOOL done = REAL(GetTokenInformation)(token, class, data, size, needed);
    /* The filtered token has no privilege of those that matter here. */
    if (done && class == TokenPrivileges && getenv("STANDIN_ELEVATION") && !strcmp(getenv("STANDIN_ELEVATION"), "limited"))
        ((TOKEN_PRIVILEGES *)data)->PrivilegeCount = 0;
    return done;
}

/* STANDIN_NAMES: "DOMAIN\name=SID;...". Calls `found` until it says that this is the one. */
static int named(int (*found)(WCHAR *name, WCHAR *sid, void *context), void *context) {
    WCHAR names[2048], *rest = names, *one;
    const char *setting = getenv("STANDIN_NAMES");
    if (!setting || !MultiByteToWideChar(CP_UTF8, 0, setting, -1, names, 2048)) return 0;
    while ((one = wcstok_s(rest, L";", &rest))) {
        WCHAR *sid = wcschr(one, '=');
        if (!sid) continue;
        *sid++ = 0;
        if (found(one, sid, context)) return 1;
    }
    return 0;
}

struct by_name { LPCWSTR name; PSID sid; LPWSTR domain; PSID_NAME_USE use; };

static int has_name(WCHAR *name, WCHAR *text, void *context) {
    struct by_name *wanted = context;
    WCHAR *bare = wcschr(name, '\\') + 1;
    PSID sid;
    if (_wcsicmp(name, wanted->name) && _wcsicmp(bare, wanted->name)) return 0;
    if (!REAL(ConvertStringSidToSidW)(text, &sid)) return 0;
    memcpy(wanted->sid, sid, 8 + 4 * ((BYTE *)sid)[1]);
    bare[-1] = 0;
    wcscpy(wanted->domain, name);
    *wanted->use = SidTypeUser;
    LocalFree(sid);
    return 1;
}

API BOOL WINAPI LookupAccountNameW(LPCWSTR system, LPCWSTR name, PSID sid, LPDWORD size, LPWSTR domain, LPDWORD room, PSID_NAME_USE use) {
    struct by_name wanted = {name, sid, domain, use};
    if (asked("LookupAccountNameW", name)) return FALSE;
    return named(has_name, &wanted) || REAL(LookupAccountNameW)(system, name, sid, size, domain, room, use);
}

struct by_sid { PSID sid; LPWSTR name; LPDWORD size; LPWSTR domain; LPDWORD room; PSID_NAME_USE use; };

static int has_sid(WCHAR *name, WCHAR *text, void *context) {
    struct by_sid *wanted = context;
    WCHAR *bare = wcschr(name, '\\') + 1, *sid;
    int same;
    if (!REAL(ConvertSidToStringSidW)(wanted->sid, &sid)) return 0;
    same = !wcscmp(sid, text);
    LocalFree(sid);
    if (!same) return 0;
    bare[-1] = 0;
    wcscpy(wanted->name, bare);
    wcscpy(wanted->domain, name);
    *wanted->size = (DWORD)wcslen(bare);
    *wanted->room = (DWORD)wcslen(name);
    *wanted->use = SidTypeUser;
    return 1;
}

API BOOL WINAPI LookupAccountSidW(LPCWSTR system, PSID sid, LPWSTR name, LPDWORD size, LPWSTR domain, LPDWORD room, PSID_NAME_USE use) {
    struct by_sid wanted = {sid, name, size, domain, room, use};
    if (asked("LookupAccountSidW", 0)) return FALSE;
    return named(has_sid, &wanted) || REAL(LookupAccountSidW)(system, sid, name, size, domain, room, use);
}

/* Every key and value below a key, as lines KEY|NAME|TYPE|BYTES. */
static void tell(FILE *out, const WCHAR *path) {
    HKEY key;
    if (REAL(RegOpenKeyExW)(HKEY_LOCAL_MACHINE, path, 0, KEY_READ, &key)) return;
    fprintf(out, "%ls|||\n", path);
    for (DWORD i = 0;; i++) {
        WCHAR name[256];
        BYTE data[8192];
        DWORD length = 256, size = sizeof data, type;
        if (REAL(RegEnumValueW)(key, i, name, &length, 0, &type, data, &size)) break;
        fprintf(out, "%ls|%ls|%lu|", path, name, type);
        for (DWORD j = 0; j < size; j++) fprintf(out, "%02x", data[j]);
        fprintf(out, "\n");
    }
    for (DWORD i = 0;; i++) {
        WCHAR name[256], below[1024];
        DWORD length = 256;
        if (REAL(RegEnumKeyExW)(key, i, name, &length, 0, 0, 0, 0)) break;
        swprintf(below, 1024, L"%ls\\%ls", path, name);
        tell(out, below);
    }
    REAL(RegCloseKey)(key);
}

/* STANDIN_RIGHTS: a file for all that is stored about rights when the program ends. */
__attribute__((destructor)) static void at_end(void) {
    const char *path = getenv("STANDIN_RIGHTS");
    FILE *out = path ? fopen(path, "w") : 0;
    if (!out) return;
    tell(out, L"SYSTEM\\CurrentControlSet\\Control\\WMI\\Security");
    tell(out, L"SOFTWARE\\standin");
    tell(out, L"SOFTWARE\\etwprof");
    fclose(out);
}
