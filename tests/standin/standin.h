/* What the parts of the stand-in share. */
#pragma once
#include <windows.h>

/* One JSON line into the call log (STANDIN_LOG). `arguments` is the inside of an object, or empty. */
void call_log(const char *call, const char *arguments, ULONG answer);

/* The answer that STANDIN_FAIL wants for this call, or 0. `detail` narrows it: "ControlTraceW.stop". */
ULONG injected(const char *call, const char *detail);

/* Marks what the library exports: scripts/build-standin looks for it. */
#define API

/* Wine's own function: ours of the same name would be called otherwise, and fail when they are to. */
FARPROC real(const char *name);
#define REAL(name) ((__typeof__(&name))real(#name))

/* ERROR_ACCESS_DENIED if STANDIN_ACCOUNT names a SID to whom the object's descriptor does not allow all these rights. */
ULONG refused(const GUID *object, ULONG rights);

/* ERROR_PRIVILEGE_NOT_HELD if STANDIN_ACCOUNT names a SID without the privilege to profile. */
ULONG unprivileged(void);

/* Answers a query of HKEY_PERFORMANCE_DATA, if one is played (counters.c). */
int counters_query(LPCWSTR name, LPDWORD type, LPBYTE data, LPDWORD size, LONG *answer);

/* Keeps a record that is handed out, and writes what is left (save.c). */
struct etl;
struct event;
int saving(void);
void save(const struct etl *etl, const struct event *e, int kernel);
void save_ends(void);
