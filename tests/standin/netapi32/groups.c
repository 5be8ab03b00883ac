/* The members of local groups, of which Wine has only the names of functions: kept in HKLM\SOFTWARE\standin\Groups, a
   key for each group, a value for each member's SID. */
#include "../standin.h"
#include <lm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUPS L"SOFTWARE\\standin\\Groups\\"

static HKEY group_key(LPCWSTR group) {
    WCHAR path[300];
    HKEY key = 0;
    swprintf(path, 300, GROUPS L"%ls", group);
    REAL(RegCreateKeyExW)(HKEY_LOCAL_MACHINE, path, 0, 0, 0, KEY_ALL_ACCESS, 0, &key, 0);
    return key;
}

static void sid_name(PSID sid, WCHAR out[200]) {
    const BYTE *b = sid;
    int at = swprintf(out, 200, L"S-%u-%u", b[0], b[7]);
    for (int i = 0; i < b[1] && i < 15; i++) {
        DWORD sub;
        memcpy(&sub, b + 8 + 4 * i, 4);
        at += swprintf(out + at, 200 - at, L"-%lu", sub);
    }
}

static void log_call(const char *call, LPCWSTR group, PSID sid, ULONG answer) {
    WCHAR who[200] = L"";
    char arguments[500];
    if (sid) sid_name(sid, who);
    snprintf(arguments, sizeof arguments, "\"group\":\"%ls\",\"sid\":\"%ls\"", group, who);
    call_log(call, arguments, answer);
}

API ULONG WINAPI NetLocalGroupAddMembers(LPCWSTR server, LPCWSTR group, DWORD level, LPBYTE members, DWORD count) {
    ULONG answer = injected("NetLocalGroupAddMembers", "");
    PSID sid = ((LOCALGROUP_MEMBERS_INFO_0 *)members)->lgrmi0_sid;
    WCHAR name[200];
    sid_name(sid, name);
    if (!answer) {
        HKEY key = group_key(group);
        answer = REAL(RegQueryValueExW)(key, name, 0, 0, 0, 0)
            ? (ULONG)REAL(RegSetValueExW)(key, name, 0, REG_BINARY, sid, 8 + 4 * ((BYTE *)sid)[1])
            : ERROR_MEMBER_IN_ALIAS;
        REAL(RegCloseKey)(key);
    }
    log_call("NetLocalGroupAddMembers", group, sid, answer);
    return answer;
}

API ULONG WINAPI NetLocalGroupDelMembers(LPCWSTR server, LPCWSTR group, DWORD level, LPBYTE members, DWORD count) {
    ULONG answer = injected("NetLocalGroupDelMembers", "");
    PSID sid = ((LOCALGROUP_MEMBERS_INFO_0 *)members)->lgrmi0_sid;
    WCHAR name[200];
    sid_name(sid, name);
    if (!answer) {
        HKEY key = group_key(group);
        if (REAL(RegDeleteValueW)(key, name)) answer = ERROR_MEMBER_NOT_IN_ALIAS;
        REAL(RegCloseKey)(key);
    }
    log_call("NetLocalGroupDelMembers", group, sid, answer);
    return answer;
}

API ULONG WINAPI NetLocalGroupGetMembers(LPCWSTR server, LPCWSTR group, DWORD level, LPBYTE *buffer, DWORD most, LPDWORD read,
                                         LPDWORD total, PDWORD_PTR resume) {
    ULONG answer = injected("NetLocalGroupGetMembers", "");
    *buffer = 0;
    *read = *total = 0;
    if (!answer) {
        HKEY key = group_key(group);
        LOCALGROUP_MEMBERS_INFO_0 *members = malloc(16 * sizeof *members + 16 * 68);
        BYTE *sids = (BYTE *)(members + 16);
        for (DWORD i = 0; i < 16; i++) {
            WCHAR name[200];
            DWORD length = 200, size = 68;
            if (REAL(RegEnumValueW)(key, i, name, &length, 0, 0, sids + 68 * i, &size)) break;
            members[i].lgrmi0_sid = sids + 68 * i;
            *total = ++*read;
        }
        REAL(RegCloseKey)(key);
        *buffer = (LPBYTE)members;
    }
    log_call("NetLocalGroupGetMembers", group, 0, answer);
    return answer;
}

/* The groups that are kept here with the account's SID in them. */
API ULONG WINAPI NetUserGetLocalGroups(LPCWSTR server, LPCWSTR user, DWORD level, DWORD flags, LPBYTE *buffer, DWORD most,
                                       LPDWORD read, LPDWORD total) {
    ULONG answer = injected("NetUserGetLocalGroups", "");
    BYTE sid[68];
    WCHAR domain[512], who[200];
    DWORD size = sizeof sid, room = 512;
    SID_NAME_USE use;
    HKEY key;
    *buffer = 0;
    *read = *total = 0;
    if (!answer && !LookupAccountNameW(0, user, sid, &size, domain, &room, &use)) answer = 2221; /* no such user */
    if (!answer && !REAL(RegOpenKeyExW)(HKEY_LOCAL_MACHINE, L"SOFTWARE\\standin\\Groups", 0, KEY_READ, &key)) {
        LOCALGROUP_USERS_INFO_0 *groups = malloc(16 * sizeof *groups + 16 * 200 * sizeof(WCHAR));
        WCHAR *name = (WCHAR *)(groups + 16);
        sid_name(sid, who);
        for (DWORD i = 0; i < 16; i++, name += 200) {
            DWORD length = 200;
            HKEY group;
            if (REAL(RegEnumKeyExW)(key, i, name, &length, 0, 0, 0, 0)) break;
            if (REAL(RegOpenKeyExW)(key, name, 0, KEY_READ, &group)) continue;
            if (!REAL(RegQueryValueExW)(group, who, 0, 0, 0, 0)) groups[(*read)++].lgrui0_name = name;
            REAL(RegCloseKey)(group);
        }
        REAL(RegCloseKey)(key);
        *total = *read;
        *buffer = (LPBYTE)groups;
    }
    call_log("NetUserGetLocalGroups", "", answer);
    return answer;
}

API ULONG WINAPI NetApiBufferFree(LPVOID buffer) {
    free(buffer);
    return 0;
}
