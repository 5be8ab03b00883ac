/* Rights: the descriptors of ETW objects, which Wine has no functions for, and the account rights of LSA, of which it
   has only the names. Both are kept in the registry, so that one run finds what another left: descriptors where Windows
   keeps them, account rights in HKLM\SOFTWARE\standin\Rights. What the kernel knows is apart from that: it is told by
   EventAccessControl and EventAccessRemove alone, and does not see what is written into the registry. */
#include "standin.h"
#include <ntsecapi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECURITY L"SYSTEM\\CurrentControlSet\\Control\\WMI\\Security"
#define KERNEL L"SOFTWARE\\standin-kernel"
#define RIGHTS L"SOFTWARE\\standin\\Rights"
#define GROUPS L"SOFTWARE\\standin\\Groups\\"
#define DEFAULT_GUID L"0811c1af-7a07-4a06-82ed-869455cdf713"

static void guid_name(const GUID *g, WCHAR out[40]) {
    swprintf(out, 40, L"%08lx-%04x-%04x-%02x%02x-%02x%02x%02x%02x%02x%02x", g->Data1, g->Data2, g->Data3, g->Data4[0],
             g->Data4[1], g->Data4[2], g->Data4[3], g->Data4[4], g->Data4[5], g->Data4[6], g->Data4[7]);
}

static void sid_text(PSID sid, char out[200]) {
    const BYTE *b = sid;
    int at = snprintf(out, 200, "S-%u-%u", b[0], b[7]);
    for (int i = 0; i < b[1] && i < 15; i++) {
        DWORD sub;
        memcpy(&sub, b + 8 + 4 * i, 4);
        at += snprintf(out + at, 200 - at, "-%lu", sub);
    }
}

/* Allow entries as Windows is installed with: Everyone, LocalSystem, Administrators, LocalService, NetworkService,
   Performance Log Users, in a self-relative descriptor. */
static DWORD default_descriptor(BYTE *out) {
    static const struct { DWORD rights; BYTE sid[16]; BYTE length; } entries[] = {
        {0x00001800, {1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0}, 12},
        {0x00120fff, {1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0}, 12},
        {0x00120fff, {1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 0x20, 2, 0, 0}, 16},
        {0x00120fff, {1, 1, 0, 0, 0, 0, 0, 5, 19, 0, 0, 0}, 12},
        {0x00120fff, {1, 1, 0, 0, 0, 0, 0, 5, 20, 0, 0, 0}, 12},
        {0x00000ee5, {1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 0x2f, 2, 0, 0}, 16},
    };
    const int many = sizeof entries / sizeof *entries;
    DWORD at = 20 + 8, owner, size;
    memset(out, 0, 512);
    out[0] = 1; out[2] = 4; out[3] = 0x80; out[16] = 20; /* the list comes first */
    for (int i = 0; i < many; i++) {
        WORD length = 8 + entries[i].length;
        memcpy(out + at + 2, &length, 2);
        memcpy(out + at + 4, &entries[i].rights, 4);
        memcpy(out + at + 8, entries[i].sid, entries[i].length);
        at += length;
    }
    size = at - 20;
    out[20] = 2; out[22] = (BYTE)size; out[24] = (BYTE)many;
    owner = at;
    memcpy(out + at, entries[2].sid, 16);
    at += 16;
    out[4] = (BYTE)owner; out[8] = (BYTE)owner;
    return at;
}

/* What applies to the object: its own value, the default's value, or the built-in default. Returns the size. */
static DWORD descriptor(const WCHAR *name, BYTE *out, DWORD room) {
    HKEY key;
    DWORD size = room;
    if (!REAL(RegOpenKeyExW)(HKEY_LOCAL_MACHINE, SECURITY, 0, KEY_READ, &key)) {
        LONG answer = REAL(RegQueryValueExW)(key, name, 0, 0, out, &size);
        if (answer) {
            size = room;
            answer = REAL(RegQueryValueExW)(key, DEFAULT_GUID, 0, 0, out, &size);
        }
        REAL(RegCloseKey)(key);
        if (!answer) return size;
    }
    return default_descriptor(out);
}

static LONG keep(const WCHAR *path, const WCHAR *name, const BYTE *bytes, DWORD size) {
    HKEY key;
    LONG answer = REAL(RegCreateKeyExW)(HKEY_LOCAL_MACHINE, path, 0, 0, 0, KEY_ALL_ACCESS, 0, &key, 0);
    if (answer) return answer;
    answer = bytes ? REAL(RegSetValueExW)(key, name, 0, REG_BINARY, bytes, size) : REAL(RegDeleteValueW)(key, name);
    REAL(RegCloseKey)(key);
    return answer;
}

API ULONG WINAPI EventAccessControl(GUID *guid, ULONG operation, PSID sid, ULONG rights, BOOLEAN allow) {
    BYTE old[8192], new[8192];
    WCHAR name[40];
    char who[200], arguments[400];
    ULONG answer = injected("EventAccessControl", "");
    guid_name(guid, name);
    sid_text(sid, who);
    if (!answer && operation != 2) answer = ERROR_INVALID_PARAMETER; /* only what etwprof uses: add to the DACL */
    if (!answer) {
        /* The list is moved to the end, with the new entry as the last of its kind. */
        DWORD size = descriptor(name, old, sizeof old), list, at;
        WORD length = 8 + 8 + 4 * ((BYTE *)sid)[1] , total, count;
        memcpy(&list, old + 16, 4);
        if (!list) { /* no list, which allows everything: it becomes one that allows nothing but the new entry */
            static const BYTE empty[8] = {2, 0, 8, 0, 0, 0, 0, 0};
            list = size;
            memcpy(old + list, empty, 8);
            old[2] |= 4;
            size += 8;
        }
        memcpy(&count, old + list + 4, 2);
        /* Behind the last entry there may be room, which is dropped. */
        total = 8;
        for (WORD i = 0, one; i < count; i++, total += one) memcpy(&one, old + list + total + 2, 2);
        memcpy(new, old, size);
        memcpy(new + size, old + list, 8);
        at = 8;
        if (allow) { memcpy(new + size + 8, old + list + 8, total - 8); at = total; }
        BYTE *entry = new + size + at;
        memset(entry, 0, 4);
        entry[0] = allow ? 0 : 1;
        memcpy(entry + 2, &length, 2);
        memcpy(entry + 4, &rights, 4);
        memcpy(entry + 8, sid, length - 8);
        if (!allow) memcpy(entry + length, old + list + 8, total - 8);
        total += length;
        count++;
        memcpy(new + size + 2, &total, 2);
        memcpy(new + size + 4, &count, 2);
        memcpy(new + 16, &size, 4);
        answer = keep(SECURITY, name, new, size + total);
        if (!answer) keep(KERNEL, name, new, size + total);
    }
    snprintf(arguments, sizeof arguments, "\"guid\":\"%ls\",\"operation\":%lu,\"sid\":\"%s\",\"rights\":%lu,\"allow\":%d", name,
             operation, who, rights, allow);
    call_log("EventAccessControl", arguments, answer);
    return answer;
}

API ULONG WINAPI EventAccessQuery(GUID *guid, PSECURITY_DESCRIPTOR buffer, ULONG *size) {
    BYTE bytes[8192];
    WCHAR name[40];
    char arguments[100];
    ULONG answer = injected("EventAccessQuery", ""), needed;
    guid_name(guid, name);
    needed = descriptor(name, bytes, sizeof bytes);
    if (!answer && *size < needed) answer = ERROR_MORE_DATA;
    if (!answer) memcpy(buffer, bytes, needed);
    *size = needed;
    snprintf(arguments, sizeof arguments, "\"guid\":\"%ls\"", name);
    call_log("EventAccessQuery", arguments, answer);
    return answer;
}

API ULONG WINAPI EventAccessRemove(GUID *guid) {
    WCHAR name[40];
    char arguments[100];
    ULONG answer = injected("EventAccessRemove", "");
    guid_name(guid, name);
    if (!answer) answer = keep(SECURITY, name, 0, 0);
    if (!answer) keep(KERNEL, name, 0, 0);
    snprintf(arguments, sizeof arguments, "\"guid\":\"%ls\"", name);
    call_log("EventAccessRemove", arguments, answer);
    return answer;
}

/* The rights of accounts: one key, one multi-string value for each SID. */
static NTSTATUS account(PSID sid, WCHAR *lines, DWORD room, int write) {
    char narrow[200];
    WCHAR name[200];
    HKEY key;
    DWORD size = room * 2;
    sid_text(sid, narrow);
    swprintf(name, 200, L"%hs", narrow);
    if (REAL(RegCreateKeyExW)(HKEY_LOCAL_MACHINE, RIGHTS, 0, 0, 0, KEY_ALL_ACCESS, 0, &key, 0)) return 0xC0000022;
    if (!write) {
        memset(lines, 0, size);
        if (REAL(RegQueryValueExW)(key, name, 0, 0, (BYTE *)lines, &size)) *lines = 0;
    } else if (!*lines) {
        REAL(RegDeleteValueW)(key, name);
    } else {
        DWORD length = 0;
        while (lines[length]) length += (DWORD)wcslen(lines + length) + 1;
        REAL(RegSetValueExW)(key, name, 0, REG_MULTI_SZ, (BYTE *)lines, (length + 1) * 2);
    }
    REAL(RegCloseKey)(key);
    return 0;
}

static void log_rights(const char *call, PSID sid, const LSA_UNICODE_STRING *right, NTSTATUS answer) {
    char who[200], arguments[400];
    sid_text(sid, who);
    if (right)
        snprintf(arguments, sizeof arguments, "\"sid\":\"%s\",\"right\":\"%.*ls\"", who, right->Length / 2, right->Buffer);
    else snprintf(arguments, sizeof arguments, "\"sid\":\"%s\"", who);
    call_log(call, arguments, (ULONG)answer);
}

API NTSTATUS WINAPI LsaOpenPolicy(PLSA_UNICODE_STRING system, PLSA_OBJECT_ATTRIBUTES attributes, ACCESS_MASK access, PLSA_HANDLE handle) {
    char arguments[64];
    NTSTATUS answer = (NTSTATUS)injected("LsaOpenPolicy", access & 0x10 ? "write" : "read");
    *handle = (LSA_HANDLE)1;
    snprintf(arguments, sizeof arguments, "\"access\":%lu", access);
    call_log("LsaOpenPolicy", arguments, (ULONG)answer);
    return answer;
}

API NTSTATUS WINAPI LsaClose(LSA_HANDLE handle) { return 0; }

API NTSTATUS WINAPI LsaFreeMemory(PVOID memory) {
    free(memory);
    return 0;
}

API NTSTATUS WINAPI LsaEnumerateAccountRights(LSA_HANDLE handle, PSID sid, PLSA_UNICODE_STRING *rights, PULONG count) {
    WCHAR lines[1024];
    NTSTATUS answer = (NTSTATUS)injected("LsaEnumerateAccountRights", "");
    *rights = 0;
    *count = 0;
    if (!answer) answer = account(sid, lines, 1024, 0);
    if (!answer && !*lines) answer = (NTSTATUS)0xC0000034;
    if (!answer) {
        char *memory = malloc(16 * sizeof **rights + sizeof lines);
        WCHAR *text = memcpy(memory + 16 * sizeof **rights, lines, sizeof lines);
        *rights = (PLSA_UNICODE_STRING)memory;
        for (; *text && *count < 16; text += wcslen(text) + 1) {
            LSA_UNICODE_STRING *right = *rights + (*count)++;
            right->Buffer = text;
            right->Length = right->MaximumLength = (USHORT)(2 * wcslen(text));
        }
    }
    log_rights("LsaEnumerateAccountRights", sid, 0, answer);
    return answer;
}

static NTSTATUS change(PSID sid, const LSA_UNICODE_STRING *right, int add) {
    WCHAR old[1024], new[1024] = L"";
    DWORD at = 0, length = right->Length / 2;
    NTSTATUS answer = account(sid, old, 900, 0);
    if (answer) return answer;
    for (WCHAR *line = old; *line; line += wcslen(line) + 1) {
        if (wcslen(line) == length && !_wcsnicmp(line, right->Buffer, length)) continue;
        wcscpy(new + at, line);
        at += (DWORD)wcslen(line) + 1;
    }
    if (add) {
        memcpy(new + at, right->Buffer, length * 2);
        at += length + 1;
    }
    new[at] = 0;
    return account(sid, new, 1024, 1);
}

API NTSTATUS WINAPI LsaAddAccountRights(LSA_HANDLE handle, PSID sid, PLSA_UNICODE_STRING rights, ULONG count) {
    NTSTATUS answer = (NTSTATUS)injected("LsaAddAccountRights", "");
    if (!answer) answer = change(sid, rights, 1);
    log_rights("LsaAddAccountRights", sid, rights, answer);
    return answer;
}

API NTSTATUS WINAPI LsaRemoveAccountRights(LSA_HANDLE handle, PSID sid, BOOLEAN all, PLSA_UNICODE_STRING rights, ULONG count) {
    NTSTATUS answer = (NTSTATUS)injected("LsaRemoveAccountRights", "");
    if (!answer && all) answer = (NTSTATUS)0xC000000D; /* etwprof must never take all */
    if (!answer) answer = change(sid, rights, 0);
    log_rights("LsaRemoveAccountRights", sid, rights, answer);
    return answer;
}

static int is_member(const WCHAR *group, const char *account) {
    WCHAR path[300], name[200];
    HKEY key;
    swprintf(path, 300, GROUPS L"%ls", group);
    swprintf(name, 200, L"%hs", account);
    if (REAL(RegOpenKeyExW)(HKEY_LOCAL_MACHINE, path, 0, KEY_READ, &key)) return 0;
    LONG answer = REAL(RegQueryValueExW)(key, name, 0, 0, 0, 0);
    REAL(RegCloseKey)(key);
    return !answer;
}

ULONG refused(const GUID *object, ULONG rights) {
    const char *account = getenv("STANDIN_ACCOUNT");
    BYTE bytes[8192];
    WCHAR name[40];
    DWORD list, size = sizeof bytes;
    WORD count;
    HKEY key;
    int known = 0, logs;
    if (!account || !*account) return 0;
    guid_name(object, name);
    if (!REAL(RegOpenKeyExW)(HKEY_LOCAL_MACHINE, KERNEL, 0, KEY_READ, &key)) {
        known = !REAL(RegQueryValueExW)(key, name, 0, 0, bytes, &size);
        REAL(RegCloseKey)(key);
    }
    if (!known) descriptor(name, bytes, sizeof bytes);
    logs = is_member(L"Performance Log Users", account);
    memcpy(&list, bytes + 16, 4);
    if (!list) return 0;
    memcpy(&count, bytes + list + 4, 2);
    BYTE *entry = bytes + list + 8;
    for (int i = 0; i < count; i++) {
        char who[200];
        WORD length;
        DWORD mask;
        memcpy(&length, entry + 2, 2);
        memcpy(&mask, entry + 4, 4);
        sid_text(entry + 8, who);
        if (!strcmp(who, account) || !strcmp(who, "S-1-1-0") || (logs && !strcmp(who, "S-1-5-32-559"))) {
            if (entry[0] == 1 && (mask & rights)) return ERROR_ACCESS_DENIED;
            if (entry[0] == 0) rights &= ~mask;
        }
        entry += length;
    }
    return rights ? ERROR_ACCESS_DENIED : 0;
}

ULONG unprivileged(void) {
    const char *text = getenv("STANDIN_ACCOUNT");
    WCHAR name[200], lines[1024] = L"";
    DWORD size = sizeof lines;
    HKEY key;
    if (!text || !*text) return 0;
    swprintf(name, 200, L"%hs", text);
    if (!REAL(RegOpenKeyExW)(HKEY_LOCAL_MACHINE, RIGHTS, 0, KEY_READ, &key)) {
        if (REAL(RegQueryValueExW)(key, name, 0, 0, (BYTE *)lines, &size)) *lines = 0;
        REAL(RegCloseKey)(key);
    }
    for (WCHAR *line = lines; *line; line += wcslen(line) + 1)
        if (!wcscmp(line, L"SeSystemProfilePrivilege")) return 0;
    return ERROR_PRIVILEGE_NOT_HELD;
}
