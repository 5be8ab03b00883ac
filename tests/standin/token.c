/* The calls that switch a privilege on: Wine's own, which succeed, but for the faults. */
#include "standin.h"

API BOOL WINAPI LookupPrivilegeValueW(LPCWSTR system, LPCWSTR name, PLUID id) {
    ULONG answer = injected("LookupPrivilegeValueW", "");
    if (!answer) return REAL(LookupPrivilegeValueW)(system, name, id);
    SetLastError(answer);
    return FALSE;
}

API BOOL WINAPI AdjustTokenPrivileges(HANDLE token, BOOL none, PTOKEN_PRIVILEGES wanted, DWORD size, PTOKEN_PRIVILEGES before, PDWORD needed) {
    ULONG answer = injected("AdjustTokenPrivileges", "");
    if (!answer && unprivileged()) answer = ERROR_NOT_ALL_ASSIGNED;
    call_log("AdjustTokenPrivileges", "", answer);
    if (!answer) return REAL(AdjustTokenPrivileges)(token, none, wanted, size, before, needed);
    SetLastError(answer);
    /* A token that has not the privilege is no failure of the call. */
    return answer == ERROR_NOT_ALL_ASSIGNED;
}
