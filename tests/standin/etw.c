/* A stand-in for the ETW API that plays a recorded .etl file: only what the program switched on, in the way and order
   of a live session. See README.md for its settings. */
#define INITGUID
#include "standin.h"
#include <evntrace.h>
#include <evntcons.h>
#include <tlhelp32.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "etl.h"
#include "shared.h"

#define MAX_SESSIONS 128
#define FIRST_CONSUMER 1000
#define MAX_ENABLED 16
#define MAX_STACKS 64

struct enabled { GUID provider; ULONG level; ULONGLONG keywords; ULONG pids[8]; int pid_count; int any_pid; };

struct session {
    int used, kernel, stopped;
    WCHAR name[256];
    EVENT_TRACE_PROPERTIES properties;
    ULONG flags, masks[8];
    struct { uint8_t group, type; } stacks[MAX_STACKS];
    int stack_count;
    struct enabled enabled[MAX_ENABLED];
    int enabled_count;
    int ended; /* the kernel has been asked for what runs at the end */
    ULONGLONG delivered;
};

struct consumer { int used, closed, processing; struct session *session; EVENT_TRACE_LOGFILEW logfile; };

static struct session sessions[MAX_SESSIONS];
static struct consumer consumers[MAX_SESSIONS];
static ULONG interval = 10000;
/* True from when samples are switched on. Before that only the lists of CLRs are handed out: a recording happens
   while it is sampled. */
static volatile int playing;
static CRITICAL_SECTION lock;

static const char *setting(const char *name, const char *otherwise) {
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

static void narrow(const WCHAR *wide, char *out, size_t size) {
    size_t i = 0;
    for (; wide && wide[i] && i + 1 < size; i++) out[i] = wide[i] < 128 && wide[i] != '"' && wide[i] != '\\' ? (char)wide[i] : '?';
    out[i] = 0;
}

static void guid_text(const GUID *g, char out[40]) {
    snprintf(out, 40, "%08lx-%04x-%04x-%02x%02x-%02x%02x%02x%02x%02x%02x", g->Data1, g->Data2, g->Data3, g->Data4[0],
             g->Data4[1], g->Data4[2], g->Data4[3], g->Data4[4], g->Data4[5], g->Data4[6], g->Data4[7]);
}

static FILETIME started(HANDLE process) {
    FILETIME created = {0}, other[3];
    if (process) GetProcessTimes(process, &created, &other[0], &other[1], &other[2]);
    return created;
}

/* The first child of this process. A process of another parent, whose id is now ours, is older than we. */
static unsigned first_child(void) {
    unsigned child = 0;
    FILETIME own = started(GetCurrentProcess());
    HANDLE snapshot = CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0);
    PROCESSENTRY32W entry = {.dwSize = sizeof entry};
    for (BOOL more = Process32FirstW(snapshot, &entry); more && !child; more = Process32NextW(snapshot, &entry)) {
        if (entry.th32ParentProcessID != GetCurrentProcessId()) continue;
        HANDLE process = OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, FALSE, entry.th32ProcessID);
        FILETIME created = started(process);
        if (CompareFileTime(&created, &own) >= 0) child = entry.th32ProcessID;
        if (process) CloseHandle(process);
    }
    CloseHandle(snapshot);
    return child;
}

/* STANDIN_VOLUME: the digit of the recording's volume that is played as the one behind this machine's drive C:. */
static void rename_volume(struct etl *etl) {
    WCHAR here[300], wanted[64];
    const char *digit = setting("STANDIN_VOLUME", "");
    if (!*digit || !QueryDosDeviceW(L"C:", here, 300)) return;
    size_t length = (size_t)swprintf(wanted, 64, L"\\Device\\HarddiskVolume%c\\", *digit);
    if (wcslen(here) + 1 != length) return;
    for (size_t i = 0; i < etl->count; i++) {
        struct event *e = &etl->events[i];
        if (e->kind != KIND_KERNEL || (e->group != 0x14 && e->group != 0x03)) continue;
        for (size_t at = 0; at + length * 2 <= e->payload_size; at++)
            if (!memcmp(e->payload + at, wanted, length * 2)) memcpy(e->payload + at, here, length * 2 - 2);
    }
}

/* The file that is played to sessions of this kind; read once. */
static struct etl *recording(int kernel) {
    static struct etl *kept[2];
    static char paths[2][512];
    struct etl *etl;
    if (shared()) return 0; /* what happens now is played */
    EnterCriticalSection(&lock);
    const char *path = kernel ? setting("STANDIN_KERNEL", "") : setting("STANDIN_USER", setting("STANDIN_KERNEL", ""));
    if (!kept[kernel] && *path) {
        unsigned from = 0, to = 0;
        const char *pid = setting("STANDIN_PID", "");
        /* "1234=5678" or "1234=child". */
        if (sscanf(pid, "%u=%u", &from, &to) == 1) to = first_child();
        strncpy(paths[kernel], path, 511);
        kept[kernel] = etl_read(path, atoll(setting("STANDIN_FREQUENCY", "0")), from, to);
        if (kept[kernel]) rename_volume(kept[kernel]);
        if (!kept[kernel]) fprintf(stderr, "stand-in: cannot read %s\n", path);
        else if (*setting("STANDIN_CLOCK", "")) kept[kernel]->frequency = atoll(setting("STANDIN_CLOCK", ""));
    }
    etl = kept[kernel];
    LeaveCriticalSection(&lock);
    return etl;
}

static struct session *by_name(const WCHAR *name) {
    for (int i = 0; i < MAX_SESSIONS; i++)
        if (sessions[i].used && !sessions[i].stopped && !_wcsicmp(sessions[i].name, name)) return &sessions[i];
    return 0;
}

static struct session *by_handle(TRACEHANDLE handle) {
    if (handle < 100 || handle >= 100 + MAX_SESSIONS) return 0;
    struct session *session = &sessions[handle - 100];
    return session->used && !session->stopped ? session : 0;
}

static TRACEHANDLE handle_of(const struct session *session) { return 100 + (TRACEHANDLE)(session - sessions); }

static struct session *new_session(const WCHAR *name) {
    for (int i = 0; i < MAX_SESSIONS; i++)
        if (!sessions[i].used) {
            memset(&sessions[i], 0, sizeof sessions[i]);
            sessions[i].used = 1;
            wcsncpy(sessions[i].name, name, 255);
            return &sessions[i];
        }
    return 0;
}

static void existing(void) { /* STANDIN_EXISTING: names of sessions that somebody else started, with ';' between */
    static int done;
    if (done++) return;
    char *copy = strdup(setting("STANDIN_EXISTING", "")), *rest = copy, *name;
    while ((name = strtok_s(rest, ";", &rest))) {
        WCHAR wide[256];
        MultiByteToWideChar(CP_UTF8, 0, name, -1, wide, 256);
        new_session(wide)->kernel = 1;
    }
    free(copy);
}

static HANDLE shared_by_all(void) {
    static HANDLE mutex;
    if (!mutex) mutex = CreateMutexA(0, FALSE, "standin-state");
    return mutex;
}

/* STANDIN_STATE: a file with the interval and the sessions, which outlive the processes that play on it. `enter` reads it
   for one call, `leave` writes it. */
static void enter(void) {
    char line[400], name[300];
    int kernel, there[MAX_SESSIONS] = {0};
    ULONG flags;
    EnterCriticalSection(&lock);
    const char *path = setting("STANDIN_STATE", "");
    if (!*path) return;
    WaitForSingleObject(shared_by_all(), INFINITE);
    FILE *file = fopen(path, "r");
    if (!file) return;
    while (fgets(line, sizeof line, file)) {
        WCHAR wide[256];
        sscanf(line, "interval %lu", &interval);
        if (sscanf(line, "session %d %lu %255[^\n]", &kernel, &flags, name) != 3) continue;
        MultiByteToWideChar(CP_UTF8, 0, name, -1, wide, 256);
        struct session *session = by_name(wide);
        if (!session && (session = new_session(wide))) {
            session->kernel = kernel;
            session->flags = flags;
        }
        if (session) there[session - sessions] = 1;
    }
    fclose(file);
    for (int i = 0; i < MAX_SESSIONS; i++)
        if (sessions[i].used && !there[i]) sessions[i].stopped = 1;
}

static void leave(void) {
    const char *path = setting("STANDIN_STATE", "");
    if (*path) {
        FILE *file = fopen(path, "w");
        fprintf(file, "interval %lu\n", interval);
        for (int i = 0; i < MAX_SESSIONS; i++)
            if (sessions[i].used && !sessions[i].stopped)
                fprintf(file, "session %d %lu %ls\n", sessions[i].kernel, sessions[i].flags, sessions[i].name);
        fclose(file);
        ReleaseMutex(shared_by_all());
    }
    LeaveCriticalSection(&lock);
}

/* STANDIN_WINDOWS=8: the first Windows 8, which knows less. */
static int is_windows_8(void) { return !strcmp(setting("STANDIN_WINDOWS", ""), "8"); }

static void fill(struct session *session, PEVENT_TRACE_PROPERTIES p) {
    ULONG size = p->Wnode.BufferSize, name = p->LoggerNameOffset;
    unsigned events = 0, buffers = 0, real_time = 0;
    sscanf(setting("STANDIN_LOST", ""), "%u,%u,%u", &events, &buffers, &real_time);
    p->Wnode.HistoricalContext = handle_of(session);
    p->BufferSize = session->properties.BufferSize;
    p->MinimumBuffers = session->properties.MinimumBuffers;
    p->MaximumBuffers = session->properties.MaximumBuffers;
    p->LogFileMode = session->properties.LogFileMode;
    p->EnableFlags = session->flags;
    p->NumberOfBuffers = session->properties.MinimumBuffers;
    p->FreeBuffers = session->properties.MinimumBuffers * 3 / 4;
    p->EventsLost = session->kernel ? events : 0;
    p->LogBuffersLost = session->kernel ? buffers : 0;
    p->RealTimeBuffersLost = session->kernel ? real_time : 0;
    if (name && name + 2 < size) wcsncpy((WCHAR *)((char *)p + name), session->name, (size - name) / 2 - 1);
}

API ULONG WINAPI StartTraceW(PTRACEHANDLE handle, LPCWSTR name, PEVENT_TRACE_PROPERTIES p) {
    char text[256], arguments[512];
    ULONG answer = injected("StartTraceW", p->LogFileMode & 0x02000000 ? "kernel" : "user");
    if (!answer) answer = refused(&p->Wnode.Guid, TRACELOG_CREATE_REALTIME | TRACELOG_GUID_ENABLE); /* B-start-rights */
    existing();
    *handle = 0;
    enter();
    if (!answer && by_name(name)) answer = ERROR_ALREADY_EXISTS;
    if (!answer) {
        struct session *session = new_session(name);
        session->kernel = (p->LogFileMode & 0x02000000) != 0;
        session->properties = *p;
        session->flags = p->EnableFlags;
        *handle = handle_of(session);
        fill(session, p);
    }
    leave();
    narrow(name, text, sizeof text);
    snprintf(arguments, sizeof arguments,
             "\"session\":\"%s\",\"mode\":%lu,\"flags\":%lu,\"clock\":%lu,\"buffer_kb\":%lu,\"min_buffers\":%lu,\"max_buffers\":%lu",
             text, p->LogFileMode, p->EnableFlags, p->Wnode.ClientContext, p->BufferSize, p->MinimumBuffers, p->MaximumBuffers);
    call_log("StartTraceW", arguments, answer);
    return answer;
}

API ULONG WINAPI ControlTraceW(TRACEHANDLE handle, LPCWSTR name, PEVENT_TRACE_PROPERTIES p, ULONG code) {
    static const char *codes[] = {"query", "stop", "update", "flush"};
    /* B-query-rights, B-stop-rights, B-flush-rights; etwprof does not update. */
    static const ULONG rights[] = {WMIGUID_QUERY, TRACELOG_GUID_ENABLE, ~0u, TRACELOG_CREATE_REALTIME | TRACELOG_GUID_ENABLE};
    const char *what = code < 4 ? codes[code] : "other";
    char text[256], arguments[400];
    ULONG answer = injected("ControlTraceW", what);
    existing();
    enter();
    struct session *session = handle ? by_handle(handle) : name ? by_name(name) : 0;
    if (!answer && session)
        answer = refused(&session->properties.Wnode.Guid, code < 4 ? rights[code] : ~0u);
    if (!answer && !session) answer = ERROR_WMI_INSTANCE_NOT_FOUND;
    if (!answer) {
        fill(session, p);
        if (code == EVENT_TRACE_CONTROL_STOP) {
            /* B-stop-disables: what a session had switched on goes off with it. */
            for (int i = 0; i < session->enabled_count; i++)
                shared_enable(&session->enabled[i].provider, EVENT_CONTROL_CODE_DISABLE_PROVIDER, 0, 0, 0, 0, 0);
            if (session->kernel) shared_flags(0);
            session->stopped = 1;
        }
    }
    leave();
    narrow(session ? session->name : name, text, sizeof text);
    snprintf(arguments, sizeof arguments, "\"session\":\"%s\",\"code\":\"%s\"", text, what);
    call_log("ControlTraceW", arguments, answer);
    return answer;
}

API ULONG WINAPI QueryAllTracesW(PEVENT_TRACE_PROPERTIES *all, ULONG room, PULONG count) {
    ULONG answer = injected("QueryAllTracesW", "");
    char arguments[40];
    existing();
    *count = 0;
    if (!answer && room > 64 && is_windows_8()) answer = ERROR_INVALID_PARAMETER;
    if (!answer) {
        enter();
        for (int i = 0; i < MAX_SESSIONS; i++)
            if (sessions[i].used && !sessions[i].stopped) {
                if (*count < room) fill(&sessions[i], all[*count]);
                ++*count;
            }
        leave();
        if (*count > room) answer = ERROR_MORE_DATA;
    }
    snprintf(arguments, sizeof arguments, "\"room\":%lu", room);
    call_log("QueryAllTracesW", arguments, answer);
    return answer;
}

API ULONG WINAPI EnableTraceEx2(TRACEHANDLE handle, LPCGUID provider, ULONG code, UCHAR level,
                                                  ULONGLONG any, ULONGLONG all, ULONG timeout, PENABLE_TRACE_PARAMETERS parameters) {
    char guid[40], pids[128] = "", names[256] = "", arguments[800];
    ULONG answer = injected("EnableTraceEx2", code == 1 ? "enable" : "disable");
    if (!answer) answer = refused(provider, TRACELOG_GUID_ENABLE); /* B-enable-rights */
    /* The second version, and with it filters, came with Windows 8.1. */
    if (!answer && parameters && parameters->Version != 1 && is_windows_8()) answer = ERROR_INVALID_PARAMETER;
    enter();
    struct session *session = by_handle(handle);
    if (!answer && !session) answer = ERROR_WMI_INSTANCE_NOT_FOUND;
    struct enabled enabled = {.provider = *provider, .level = level, .keywords = any, .any_pid = 1};
    if (parameters && parameters->Version == 2)
        for (ULONG i = 0; i < parameters->FilterDescCount; i++) {
            EVENT_FILTER_DESCRIPTOR *filter = &parameters->EnableFilterDesc[i];
            if (filter->Type == 0x80000008) snprintf(names, sizeof names, "%.*ls", (int)filter->Size / 2, (WCHAR *)(ULONG_PTR)filter->Ptr);
            if (filter->Type != 0x80000004) continue;
            enabled.any_pid = 0;
            for (ULONG j = 0; j < filter->Size / 4 && j < 8; j++) {
                ULONG pid = ((ULONG *)(ULONG_PTR)filter->Ptr)[j];
                enabled.pids[enabled.pid_count++] = pid;
                snprintf(pids + strlen(pids), sizeof pids - strlen(pids), "%s%lu", *pids ? "," : "", pid);
            }
        }
    if (!answer && code == EVENT_CONTROL_CODE_ENABLE_PROVIDER && session->enabled_count < MAX_ENABLED)
        session->enabled[session->enabled_count++] = enabled;
    if (!answer) shared_enable(provider, code, level, any, all, enabled.pids, enabled.pid_count);
    leave();
    guid_text(provider, guid);
    snprintf(arguments, sizeof arguments, "\"handle\":%llu,\"provider\":\"%s\",\"code\":%lu,\"level\":%u,\"keywords\":%llu,\"timeout\":%lu,\"pids\":[%s],\"names\":\"%s\"",
             handle, guid, code, level, any, timeout, pids, names);
    call_log("EnableTraceEx2", arguments, answer);
    return answer;
}

API ULONG WINAPI TraceQueryInformation(TRACEHANDLE handle, TRACE_INFO_CLASS class, PVOID data, ULONG size, PULONG returned) {
    char detail[16], arguments[128];
    snprintf(detail, sizeof detail, "%u", class);
    ULONG answer = injected("TraceQueryInformation", detail);
    if (!answer && class == 5 && size >= 8) {
        enter();
        ((ULONG *)data)[1] = interval;
        leave();
        if (returned) *returned = 8;
    } else if (!answer && class == 4 && size >= 32 && by_handle(handle)) {
        memcpy(data, by_handle(handle)->masks, 32);
        if (returned) *returned = 32;
    } else if (!answer) answer = ERROR_INVALID_PARAMETER;
    snprintf(arguments, sizeof arguments, "\"class\":%u,\"interval\":%lu", class, interval);
    call_log("TraceQueryInformation", arguments, answer);
    return answer;
}

API ULONG WINAPI TraceSetInformation(TRACEHANDLE handle, TRACE_INFO_CLASS class, PVOID data, ULONG size) {
    char detail[16], arguments[256], more[128] = "";
    snprintf(detail, sizeof detail, "%u", class);
    ULONG answer = injected("TraceSetInformation", detail);
    if (!answer && class == 5) answer = unprivileged(); /* B-interval-privilege */
    enter();
    struct session *session = by_handle(handle);
    if (!answer && class != 5 && !session) answer = ERROR_WMI_INSTANCE_NOT_FOUND;
    if (!answer && class != 5) answer = refused(&session->properties.Wnode.Guid, TRACELOG_GUID_ENABLE); /* B-setup-rights */
    if (!answer && class == 4) {
        answer = refused(&SystemTraceControlGuid, TRACELOG_GUID_ENABLE); /* B-flags-rights */
        if (!answer && size >= 8 && ((ULONG *)data)[1] & 2) answer = unprivileged(); /* B-flags-privilege */
    }
    if (!answer) switch (class) {
        case 3: /* stack tracing: CLASSIC_EVENT_ID[] */
            for (ULONG i = 0; i + 24 <= size && session->stack_count < MAX_STACKS; i += 24)
                for (int group = 0; group < 0x20; group++) {
                    uint8_t guid[16];
                    kernel_guid((uint8_t)group, 0, guid);
                    if (!guid[0] || memcmp(guid, (char *)data + i, 16)) continue;
                    session->stacks[session->stack_count].group = (uint8_t)group;
                    session->stacks[session->stack_count++].type = ((uint8_t *)data)[i + 16];
                    snprintf(more + strlen(more), sizeof more - strlen(more), ",\"stack\":\"%02x/%u\"", group, ((uint8_t *)data)[i + 16]);
                }
            snprintf(more + strlen(more), sizeof more - strlen(more), ",\"stacks\":%d", session->stack_count);
            break;
        case 4: { /* system trace flags: ULONG[8] group masks */
            ULONG *masks = data;
            int group = size >= 8 && masks[1] & 2, classic = (masks[0] & 0x01000000) != 0;
            memcpy(session->masks, masks, size < 32 ? size : 32);
            snprintf(more, sizeof more, ",\"masks\":[%lu,%lu]", masks[0], size >= 8 ? masks[1] : 0);
            /* STANDIN_PROFILE: `classic` or `group`, the one flag that gives samples. */
            const char *heeded = setting("STANDIN_PROFILE", "");
            if (!strcmp(heeded, "classic")) group = 0;
            if (!strcmp(heeded, "group")) classic = 0;
            session->flags = (masks[0] & ~0x01000000ul) | (group || classic ? 0x01000000 : 0);
            /* B-switch-flags. */
            if (size >= 8) session->flags |= (masks[1] & 4 ? 0x10 : 0) | (masks[1] & 0x200 ? 0x800 : 0);
            shared_flags(session->flags);
            if (session->flags & 0x01000000) playing = 1;
            if (playing && !session->flags) session->ended = 1;
            break;
        }
        case 5: {
            ULONG wanted = ((ULONG *)data)[1];
            ULONG least = (ULONG)atol(setting("STANDIN_LEAST_INTERVAL", "1221"));
            interval = wanted < least ? least : wanted;
            snprintf(more, sizeof more, ",\"interval\":%lu", wanted);
            break;
        }
        default: answer = ERROR_INVALID_PARAMETER;
    }
    ULONG flags = session ? session->flags : 0;
    leave();
    snprintf(arguments, sizeof arguments, "\"handle\":%llu,\"class\":%u,\"flags\":%lu%s", handle, class, flags, more);
    call_log("TraceSetInformation", arguments, answer);
    return answer;
}

API TRACEHANDLE WINAPI OpenTraceW(PEVENT_TRACE_LOGFILEW logfile) {
    char text[256], arguments[400];
    TRACEHANDLE handle = INVALID_PROCESSTRACE_HANDLE;
    int raw = (logfile->ProcessTraceMode & PROCESS_TRACE_MODE_RAW_TIMESTAMP) != 0;
    ULONG answer = injected("OpenTraceW", raw ? "raw" : "cooked");
    EnterCriticalSection(&lock);
    struct session *session = logfile->LoggerName ? by_name(logfile->LoggerName) : 0;
    if (!answer && !session) answer = ERROR_WMI_INSTANCE_NOT_FOUND;
    if (!answer) answer = refused(&session->properties.Wnode.Guid, TRACELOG_ACCESS_REALTIME); /* B-consume-rights */
    for (int i = 0; !answer && i < MAX_SESSIONS; i++)
        if (!consumers[i].used) {
            struct etl *etl = recording(session->kernel);
            TRACE_LOGFILE_HEADER *header = &logfile->LogfileHeader;
            memset(header, 0, sizeof *header);
            header->BufferSize = session->properties.BufferSize * 1024;
            header->NumberOfProcessors = etl ? etl->processors : 1;
            header->ProviderVersion = etl ? etl->build : 19045;
            header->PointerSize = 8;
            header->PerfFreq.QuadPart = etl ? etl->frequency : 10000000;
            header->StartTime.QuadPart = etl ? etl->start_filetime : 0;
            header->ReservedFlags = 1;
            if (etl && strcmp(setting("STANDIN_HEADER", ""), "bare")) { /* B-session-header */
                memcpy(&header->Version, etl->header + 4, 4);
                memcpy(&header->TimerResolution, etl->header + 24, 4);
                memcpy(&header->CpuSpeedInMHz, etl->header + 52, 4);
                memcpy(&header->TimeZone, etl->header + 72, 172);
                memcpy(&header->BootTime, etl->header + 248, 8);
            }
            consumers[i].used = 1;
            consumers[i].session = session;
            consumers[i].logfile = *logfile;
            handle = FIRST_CONSUMER + (TRACEHANDLE)i;
            break;
        }
    LeaveCriticalSection(&lock);
    narrow(logfile->LoggerName, text, sizeof text);
    snprintf(arguments, sizeof arguments, "\"session\":\"%s\",\"raw\":%d,\"handle\":%lld", text, raw, (long long)handle);
    call_log("OpenTraceW", arguments, answer);
    if (answer) SetLastError(answer);
    return handle;
}

API ULONG WINAPI CloseTrace(TRACEHANDLE handle) {
    char text[256] = "", arguments[400];
    ULONG answer = injected("CloseTrace", "");
    struct consumer *consumer = handle >= FIRST_CONSUMER && handle < FIRST_CONSUMER + MAX_SESSIONS ? &consumers[handle - FIRST_CONSUMER] : 0;
    EnterCriticalSection(&lock);
    if (consumer && consumer->used) narrow(consumer->session->name, text, sizeof text);
    if (!answer) {
        if (!consumer || !consumer->used || consumer->closed) answer = ERROR_INVALID_HANDLE;
        else if (consumer->processing) { consumer->closed = 1; answer = ERROR_CTX_CLOSE_PENDING; }
        else memset(consumer, 0, sizeof *consumer);
    }
    LeaveCriticalSection(&lock);
    snprintf(arguments, sizeof arguments, "\"handle\":%llu,\"session\":\"%s\"", handle, text);
    call_log("CloseTrace", arguments, answer);
    return answer;
}

/* The lists that a CLR gives at the end, by provider and id. */
static int is_end_rundown(const struct event *e) {
    static const uint8_t rundown[4] = {0x1c, 0x02, 0x69, 0xa6}; /* a669021c... */
    if (e->kind != KIND_USER || memcmp(e->provider, rundown, 4)) return 0;
    return e->id == 142 || e->id == 144 || e->id == 146 || e->id == 148 || e->id == 150 || e->id == 152 || e->id == 154
        || e->id == 156 || e->id == 158;
}

/* The lists that a CLR gives at the start. */
static int is_start_rundown(const struct event *e) {
    static const uint8_t rundown[4] = {0x1c, 0x02, 0x69, 0xa6};
    return e->kind == KIND_USER && !memcmp(e->provider, rundown, 4) && e->id >= 141 && e->id <= 157 && e->id % 2;
}

/* The kernel's lists of what runs at the start and at the end. */
static int is_kernel_list(const struct event *e) {
    return e->kind == KIND_KERNEL && (e->group == 0x03 || e->group == 0x05 || e->group == 0x14) && (e->type == 3 || e->type == 4);
}

static volatile LONG64 replayed; /* by how much later than in the file the kernel session is now */
static int all_stacks, no_samples; /* STANDIN_STACKS */
static enum { ANSWERS, DOES_NOT_ANSWER, DOES_NOT_FINISH } clr_end; /* STANDIN_CLR_END */

static const char *lists; /* STANDIN_LISTS */
static int clr_start; /* STANDIN_CLR_START */

static void read_settings(void) {
    lists = setting("STANDIN_LISTS", "");
    clr_start = atoi(setting("STANDIN_CLR_START", "0"));
    const char *end = setting("STANDIN_CLR_END", "");
    all_stacks = !strcmp(setting("STANDIN_STACKS", ""), "all");
    no_samples = !strcmp(setting("STANDIN_STACKS", ""), "none");
    clr_end = !strcmp(end, "none") ? DOES_NOT_ANSWER : !strcmp(end, "cut") ? DOES_NOT_FINISH : ANSWERS;
}

/* A recorded interval that is not the one in force here: the kernel would not tell it. */
static int is_wrong_interval(const struct event *e) {
    ULONG told = 0;
    if (e->type < 72 || e->type > 74) return 0;
    if (e->payload_size >= 8) memcpy(&told, (const char *)e->payload + 4, 4);
    return told != interval;
}

/* Whether the session switched this event on. */
static int wanted(const struct session *session, const struct event *e) {
    if (session->kernel) {
        ULONG flags = session->ended ? 0x01000007 : session->flags;
        if (e->kind != KIND_KERNEL || !flags) return 0;
        if (is_kernel_list(e)) {
            if (!strcmp(lists, "none")) return 0;
            if (!strcmp(lists, "switch") && e->at_end && !session->ended) return 0;
        }
        switch (e->group) {
            case 0x00: return e->type != 0;
            case 0x03: return e->type == 10 ? flags & 4 : flags & 1;
            case 0x05:
                if (e->type == 36 || e->type == 37) return (flags & 0x10) != 0;
                if (e->type == 50) return (flags & 0x800) != 0;
                return (e->type <= 4 || e->type == 72) && flags & 2;
            case 0x0b: return 1;
            case 0x0f: return !is_wrong_interval(e) && !(no_samples && e->type == 46) && (e->type == 46 || (e->type >= 72 && e->type <= 74)) && flags & 0x01000000;
            case 0x14: return flags & 4;
            case 0x18:
                if (e->type >= 34 && e->type <= 36) return session->stack_count > 0;
                if (no_samples) return 0;
                if (session->stack_count && all_stacks) return 1;
                for (int i = 0; i < session->stack_count; i++)
                    if (session->stacks[i].group == e->owner_group && session->stacks[i].type == e->owner_type) return 1;
                return 0;
            default: return 0;
        }
    }
    if (e->kind != KIND_USER) return 0;
    /* a669021c...: the CLR's rundown. Lists at the start need keyword 0x40, at the end 0x80 or 0x100. */
    static const uint8_t rundown[4] = {0x1c, 0x02, 0x69, 0xa6};
    int is_rundown = !memcmp(e->provider, rundown, 4);
    int is_end = is_end_rundown(e);
    if (is_end && (clr_end == DOES_NOT_ANSWER || (clr_end == DOES_NOT_FINISH && e->id == 146))) return 0;
    for (int i = 0; i < session->enabled_count; i++) {
        const struct enabled *on = &session->enabled[i];
        int pid = on->any_pid;
        for (int j = 0; j < on->pid_count; j++) pid |= on->pids[j] == e->pid;
        if (memcmp(&on->provider, e->provider, 16) || !pid || (on->level && e->level > on->level)) continue;
        if (e->keyword && on->keywords && !(e->keyword & on->keywords)) continue;
        /* OverrideAndSuppressNGenEvents: methods that were not compiled just in time, and are not dynamic. */
        if (is_rundown && on->keywords & 0x40000 && (e->id == 143 || e->id == 144) && e->payload_size >= 36 && !(e->payload[32] & 9))
            continue;
        if (is_rundown && e->id != 187 && !(on->keywords & (is_end ? 0x180 : 0x40))) continue;
        return 1;
    }
    return 0;
}

/* STANDIN_TIMES=now: the recording begins when the first session does. */
static int64_t moved_to_now(const struct etl *etl) {
    static int64_t shift;
    static int known;
    LARGE_INTEGER now;
    if (strcmp(setting("STANDIN_TIMES", ""), "now") || !etl->count) return 0;
    EnterCriticalSection(&lock);
    if (!known++) {
        QueryPerformanceCounter(&now);
        shift = now.QuadPart - etl->events[0].time;
    }
    LeaveCriticalSection(&lock);
    return shift;
}

static void deliver(struct consumer *consumer, const struct etl *etl, const struct event *e, int64_t shift) {
    EVENT_RECORD record = {0};
    EVENT_HEADER_EXTENDED_DATA_ITEM items[32];
    shift += moved_to_now(etl);
    int64_t time = e->time + shift, moved[1];
    uint8_t copy[65536];
    if (!(consumer->logfile.ProcessTraceMode & PROCESS_TRACE_MODE_RAW_TIMESTAMP))
        time = etl->start_filetime + (int64_t)((__int128)(time - etl->start_time) * 10000000 / etl->frequency);
    record.EventHeader.Size = (USHORT)(sizeof(EVENT_HEADER) + e->payload_size);
    record.EventHeader.Flags = (e->wide ? 0x40 : 0x20) | 0x200 | (e->kind == KIND_KERNEL ? 0x100 : 0);
    record.EventHeader.ThreadId = e->tid;
    record.EventHeader.ProcessId = e->pid;
    record.EventHeader.TimeStamp.QuadPart = time;
    memcpy(&record.EventHeader.ProviderId, e->provider, 16);
    record.EventHeader.EventDescriptor.Id = e->id;
    record.EventHeader.EventDescriptor.Version = e->version;
    record.EventHeader.EventDescriptor.Channel = e->channel;
    record.EventHeader.EventDescriptor.Level = e->level;
    record.EventHeader.EventDescriptor.Opcode = e->opcode;
    record.EventHeader.EventDescriptor.Task = e->task;
    record.EventHeader.EventDescriptor.Keyword = e->keyword;
    memcpy(&record.EventHeader.ActivityId, e->activity, 16);
    record.BufferContext.ProcessorIndex = e->processor;
    record.UserContext = consumer->logfile.Context;
    record.UserData = e->payload;
    record.UserDataLength = e->payload_size;
    /* Played again: the time of the event that a stack belongs to moves too. */
    if (shift && e->group == 0x18 && (e->type == 32 || e->type == 37 || e->type == 38) && e->payload_size >= 8) {
        memcpy(copy, e->payload, e->payload_size);
        memcpy(moved, copy, 8);
        moved[0] += shift;
        memcpy(copy, moved, 8);
        record.UserData = copy;
    }
    size_t at = 0;
    while (at + 8 <= e->items_size && record.ExtendedDataCount < 32) {
        uint16_t item[4];
        memcpy(item, e->items + at, 8);
        EVENT_HEADER_EXTENDED_DATA_ITEM *out = &items[record.ExtendedDataCount++];
        memset(out, 0, sizeof *out);
        out->ExtType = item[1];
        out->DataSize = item[3];
        out->DataPtr = (ULONGLONG)(ULONG_PTR)(e->items + at + 8);
        at += item[0] < 8 ? 8 : item[0];
    }
    record.ExtendedData = items;
    if (record.ExtendedDataCount) record.EventHeader.Flags |= 1;
    if (saving()) {
        EnterCriticalSection(&lock);
        save(etl, e, consumer->session->kernel);
        LeaveCriticalSection(&lock);
    }
    consumer->session->delivered++;
    consumer->logfile.EventRecordCallback(&record);
}

/* ProcessTrace hands out the header of the session first. Its time is no raw clock value. */
static void deliver_header(struct consumer *consumer, const struct etl *etl) {
    EVENT_RECORD record = {0};
    TRACE_LOGFILE_HEADER header = consumer->logfile.LogfileHeader;
    record.EventHeader.Size = (USHORT)(sizeof(EVENT_HEADER) + sizeof header);
    record.EventHeader.Flags = 0x40 | 0x200 | 0x100;
    record.EventHeader.TimeStamp.QuadPart = etl ? etl->start_filetime : 0;
    kernel_guid(0, 0, (uint8_t *)&record.EventHeader.ProviderId);
    record.UserContext = consumer->logfile.Context;
    record.UserData = &header;
    record.UserDataLength = sizeof header;
    consumer->logfile.EventRecordCallback(&record);
}

/* Whether CLRs were asked for a list at the start: keyword 0x40 of their rundown. */
static int starts_lists(const struct session *session) {
    for (int i = 0; i < session->enabled_count; i++)
        if (session->enabled[i].provider.Data1 == 0xa669021c && session->enabled[i].keywords & 0x40) return 1;
    return 0;
}

/* The begin (147) or the end (145) of a list at the start, of the process that STANDIN_PID plays. */
static void deliver_mark(struct consumer *consumer, const struct etl *etl, USHORT id) {
    static const GUID rundown = {0xa669021c, 0xc450, 0x4609, {0xa0, 0x35, 0x5a, 0xf5, 0x9a, 0xf4, 0xdf, 0x18}};
    EVENT_RECORD record = {0};
    unsigned from = 0, pid = 0;
    sscanf(setting("STANDIN_PID", ""), "%u=%u", &from, &pid);
    record.EventHeader.Size = sizeof(EVENT_HEADER);
    record.EventHeader.Flags = 0x40 | 0x200;
    record.EventHeader.ProcessId = pid;
    record.EventHeader.TimeStamp.QuadPart = etl ? etl->start_time : 0;
    record.EventHeader.ProviderId = rundown;
    record.EventHeader.EventDescriptor.Id = id;
    record.UserContext = consumer->logfile.Context;
    consumer->logfile.EventRecordCallback(&record);
    consumer->session->delivered++;
}

static int buffer_done(struct consumer *consumer) {
    return !consumer->logfile.BufferCallback || consumer->logfile.BufferCallback(&consumer->logfile);
}

/* Whether it is a stack of the program STANDIN_AWAITED: each of its samples has one. */
static int is_awaited(const struct event *event) {
    DWORD pid;
    if (event->kind != KIND_KERNEL || event->group != 0x18 || event->payload_size < 12) return 0;
    memcpy(&pid, event->payload + 8, 4);
    return pid == (DWORD)atol(setting("STANDIN_AWAITED", "0"));
}

/* STANDIN_SHARED: what another program writes now, until the session is stopped and all of it is read. */
static void process_shared(struct consumer *consumer) {
    static const struct etl clock = {.frequency = 10000000};
    struct event event;
    LONG64 at = 0;
    int samples = 0;
    while (!consumer->closed) {
        int stopped = consumer->session->stopped, any = 0;
        while (!consumer->closed && shared_next(consumer->session->kernel, &at, &event)) {
            deliver(consumer, &clock, &event, 0);
            any = 1;
            if (is_awaited(&event) && ++samples == 100) call_log("100 samples", "", 0);
        }
        if (!buffer_done(consumer) || (stopped && !any)) break;
        if (!any) Sleep(2);
    }
}

API ULONG WINAPI ProcessTrace(PTRACEHANDLE handles, ULONG count, LPFILETIME start, LPFILETIME end) {
    ULONG answer = injected("ProcessTrace", "");
    struct consumer *consumer = count == 1 && *handles >= FIRST_CONSUMER && *handles < FIRST_CONSUMER + MAX_SESSIONS ? &consumers[*handles - FIRST_CONSUMER] : 0;
    char text[256] = "", arguments[400];
    /* From here on a close waits for this call, instead of clearing what it works with. */
    EnterCriticalSection(&lock);
    if (!answer && (!consumer || !consumer->used || consumer->closed)) answer = ERROR_INVALID_HANDLE;
    if (!answer) consumer->processing = 1;
    LeaveCriticalSection(&lock);
    if (answer) {
        call_log("ProcessTrace", "", answer);
        return answer;
    }
    struct session *session = consumer->session;
    struct etl *etl = recording(session->kernel);
    const char *at_end = setting("STANDIN_END", "block");
    int loops = atoi(setting("STANDIN_LOOPS", "1")), real_time = !strcmp(setting("STANDIN_SPEED", "fast"), "real");
    long long rate = atoll(setting("STANDIN_RATE", "0")); /* events a second, of the kernel session */
    narrow(session->name, text, sizeof text);
    snprintf(arguments, sizeof arguments, "\"session\":\"%s\",\"priority\":%d", text, GetThreadPriority(GetCurrentThread()));
    call_log("ProcessTrace.begins", arguments, 0);
    if (shared()) {
        process_shared(consumer);
        goto out;
    }
    LARGE_INTEGER began, now, ticks;
    QueryPerformanceFrequency(&ticks);
    QueryPerformanceCounter(&began);
    int was_playing = 0, list = 0; /* begun, ended */
    LARGE_INTEGER entered = began;
    if (!consumer->closed) deliver_header(consumer, etl);
    int stop_seen = 0, loop = 0;
    long long sent = 0;
    size_t length = etl ? etl->count : 0;
    while (!consumer->closed) {
        int stopped = session->stopped, played = 0, plays = playing || stopped;
        if (clr_start && list < 2 && starts_lists(session)) {
            QueryPerformanceCounter(&now);
            if (!list) deliver_mark(consumer, etl, 147);
            if (clr_start > 0 && (now.QuadPart - entered.QuadPart) * 1000 / ticks.QuadPart >= clr_start) {
                call_log("list.ends", "", 0);
                deliver_mark(consumer, etl, 145);
                list++;
            }
            list += !list;
        }
        if (plays && !was_playing) QueryPerformanceCounter(&began);
        was_playing = plays;
        int64_t shift = etl && length && session->kernel ? (int64_t)loop * (etl->events[length - 1].time - etl->events[0].time + etl->frequency / 1000) : 0;
        /* What is switched on in the middle would come without what is before it, and that afterwards: it counts from the
           next beginning on. In real time the middle is where we are. */
        const struct session now_on = *session, *on = real_time ? session : &now_on;
        if (session->kernel) replayed = shift;
        for (size_t i = 0; i < length && !consumer->closed; i++) {
            struct event *e = &etl->events[i];
            if (loop && !stopped && e->group != 0x0f && e->group != 0x18) continue; /* what was listed is known */
            if (e->played || !wanted(on, e)) continue;
            if (e->at_end && !session->stopped && !session->ended) continue;
            if (!plays && !is_start_rundown(e)) continue;
            if (real_time && plays && !session->stopped) {
                int64_t due = (e->time - etl->events[0].time) * 1000 / etl->frequency;
                QueryPerformanceCounter(&now);
                int64_t gone = (now.QuadPart - began.QuadPart) * 1000 / ticks.QuadPart;
                while (gone < due && !consumer->closed && !session->stopped) {
                    buffer_done(consumer);
                    Sleep(due - gone > 20 ? 20 : (DWORD)(due - gone));
                    QueryPerformanceCounter(&now);
                    gone = (now.QuadPart - began.QuadPart) * 1000 / ticks.QuadPart;
                }
            }
            /* Lists at the end are written when they are asked for, which is now: after everything else. What lies in
               the future of a stopped session does not happen. */
            int64_t present = etl->events[length - 1].time + replayed, later = 0;
            if (real_time) {
                QueryPerformanceCounter(&now);
                present = etl->events[0].time + (now.QuadPart - began.QuadPart) * etl->frequency / ticks.QuadPart;
            }
            if (is_end_rundown(e) || (real_time && e->at_end)) later = present - e->time - shift;
            else if (real_time && session->stopped && e->time > present) continue;
            deliver(consumer, etl, e, shift + later);
            e->played = 1;
            played = 1;
            if (++sent % 512 == 0) {
                if (!buffer_done(consumer)) goto out;
                while (rate && session->kernel && !session->stopped) {
                    QueryPerformanceCounter(&now);
                    if (sent * ticks.QuadPart <= (now.QuadPart - began.QuadPart) * rate) break;
                    Sleep(1);
                }
            }
        }
        if (!buffer_done(consumer)) break;
        if (session->kernel && plays && played && !stopped && loop + 1 < loops) {
            loop++;
            for (size_t i = 0; i < length; i++) etl->events[i].played = 0;
            continue;
        }
        if (stopped && stop_seen) break;
        stop_seen = stopped;
        if (!stopped && plays && played && session->kernel && !strcmp(at_end, "return")) break;
        if (!played && !stopped) Sleep(2);
    }
out:
    consumer->processing = 0;
    snprintf(arguments, sizeof arguments, "\"session\":\"%s\",\"delivered\":%llu", text, session->delivered);
    call_log("ProcessTrace", arguments, 0);
    if (consumer->closed) memset(consumer, 0, sizeof *consumer);
    return 0;
}

BOOL WINAPI DllMain(HINSTANCE dll, DWORD reason, LPVOID reserved) {
    if (reason == DLL_PROCESS_ATTACH) {
        InitializeCriticalSection(&lock);
        read_settings();
        interval = (ULONG)atol(setting("STANDIN_INTERVAL", "10000"));
    } else if (reason == DLL_PROCESS_DETACH) {
        char left[1024] = "", arguments[1200], name[256];
        save_ends();
        for (int i = 0; i < MAX_SESSIONS; i++)
            if (sessions[i].used && !sessions[i].stopped) {
                narrow(sessions[i].name, name, sizeof name);
                snprintf(left + strlen(left), sizeof left - strlen(left), "%s\"%s\"", *left ? "," : "", name);
            }
        snprintf(arguments, sizeof arguments, "\"left\":[%s],\"interval\":%lu", left, interval);
        call_log("exit", arguments, 0);
    }
    return TRUE;
}
