/* The side of ETW that lies in the program which is profiled (shared.h): its providers' registrations and events; and
   for the kernel, which Wine has not, a list of its threads and images, and samples of its threads. */
#include "standin.h"
#include "shared.h"
#include <evntrace.h>
#include <evntprov.h>
#include <tlhelp32.h>
#include <winternl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROVIDERS = 64, FRAMES = 64, SAMPLERS = 256, IMAGES = 256, IDS = 256 };

struct provider {
    GUID guid;
    PENABLECALLBACK callback;
    void *context;
    LONG seen; /* commands */
    ULONG on;
    UCHAR level;
    ULONGLONG any, all;
    LONG written[IDS]; /* events of each id, the highest ones together */
};

static struct provider providers[PROVIDERS];
static volatile LONG provider_count;
static CRITICAL_SECTION callbacks;
static DWORD watcher_id, sampler_id;

static void guid_text(const GUID *g, char out[40]) {
    snprintf(out, 40, "%08lx-%04x-%04x-%02x%02x-%02x%02x%02x%02x%02x%02x", g->Data1, g->Data2, g->Data3, g->Data4[0],
             g->Data4[1], g->Data4[2], g->Data4[3], g->Data4[4], g->Data4[5], g->Data4[6], g->Data4[7]);
}

/* Calls the provider back for each command since the last time. B-enable-callback: each command calls back once, with
   what it says. B-enable-replaces: it takes the place of what the session had said before. */
static void catch_up(struct provider *provider) {
    static const GUID nobody;
    const char *without = getenv("STANDIN_WITHOUT_KEYWORDS");
    char guid[40], arguments[300];
    struct command command;
    EnterCriticalSection(&callbacks);
    for (LONG count = shared_commands(); provider->seen < count; provider->seen++) {
        if (!shared_command(provider->seen, &command) || !IsEqualGUID(&command.provider, &provider->guid)) continue;
        if (without && *without) command.any &= ~strtoull(without, 0, 0);
        provider->on = command.code == EVENT_CONTROL_CODE_ENABLE_PROVIDER;
        provider->level = command.level;
        provider->any = command.any;
        provider->all = command.all;
        guid_text(&provider->guid, guid);
        snprintf(arguments, sizeof arguments, "\"provider\":\"%s\",\"code\":%lu,\"level\":%u,\"keywords\":%llu", guid,
                 command.code, command.level, command.any);
        call_log("callback.begins", arguments, 0);
        if (provider->callback)
            provider->callback(&nobody, command.code, command.level, command.any, command.all, 0, provider->context);
        call_log("callback", arguments, 0);
    }
    LeaveCriticalSection(&callbacks);
}

/* Kernel events */

struct payload { uint8_t bytes[2048]; size_t size; };

static void add(struct payload *payload, uint64_t value, size_t size) {
    memcpy(payload->bytes + payload->size, &value, size);
    payload->size += size;
}

/* Up to 500 characters of a text, and its end. */
static void add_text(struct payload *payload, const WCHAR *text) {
    size_t length = wcslen(text) < 500 ? wcslen(text) : 500;
    memcpy(payload->bytes + payload->size, text, length * 2);
    payload->size += length * 2;
    add(payload, 0, 2);
}

static void put_kernel(uint8_t group, uint8_t type, uint8_t version, int64_t time, const struct payload *payload) {
    struct event e = {.kind = KIND_KERNEL, .group = group, .type = type, .opcode = type, .version = version, .wide = 1,
                      .time = time, .pid = 0xffffffff, .tid = 0xffffffff, .owner_group = -1, .owner_type = -1};
    kernel_guid(group, type, e.provider);
    if (group == 0x18) {
        e.owner_group = 0x0f;
        e.owner_type = 46;
    }
    shared_put(e, payload->bytes, payload->size);
}

/* Images that were not listed yet, as Image/Load 3, or as DCStart in the list at the start. */
static void put_images(uint8_t group, uint8_t type) {
    static HMODULE listed[IMAGES];
    static int count;
    WCHAR drive[4] = L"?:", device[MAX_PATH], full[2 * MAX_PATH];
    HANDLE snapshot = CreateToolhelp32Snapshot(TH32CS_SNAPMODULE, GetCurrentProcessId());
    MODULEENTRY32W module = {.dwSize = sizeof module};
    for (BOOL more = Module32FirstW(snapshot, &module); more && count < IMAGES; more = Module32NextW(snapshot, &module)) {
        struct payload p = {.size = 0};
        int known = 0;
        for (int i = 0; i < count; i++) known |= listed[i] == module.hModule;
        if (known) continue;
        listed[count++] = module.hModule;
        /* The kernel names files by device. */
        drive[0] = module.szExePath[0];
        if (!QueryDosDeviceW(drive, device, MAX_PATH)) wcscpy(device, drive);
        _snwprintf(full, 2 * MAX_PATH, L"%ls%ls", device, module.szExePath + 2);
        add(&p, (ULONG_PTR)module.modBaseAddr, 8), add(&p, module.modBaseSize, 8), add(&p, GetCurrentProcessId(), 4);
        for (int i = 0; i < 3; i++) add(&p, 0, 4);
        add(&p, (ULONG_PTR)module.modBaseAddr, 8);
        for (int i = 0; i < 4; i++) add(&p, 0, 4);
        add_text(&p, full);
        put_kernel(group, type, 3, 0, &p);
    }
    CloseHandle(snapshot);
}

/* Process/DCStart 4, Thread/DCStart 3 and Image/DCStart 3. */
static void list_this_program(void) {
    DWORD pid = GetCurrentProcessId();
    WCHAR path[MAX_PATH];
    struct payload p = {.size = 0};
    GetModuleFileNameW(0, path, MAX_PATH);
    add(&p, 0xffff800000000000 + pid, 8);
    add(&p, pid, 4), add(&p, 0, 4), add(&p, 1, 4), add(&p, 259, 4);
    add(&p, 0, 8), add(&p, 0, 4), add(&p, 0, 4); /* table, flags, no SID */
    for (const WCHAR *name = wcsrchr(path, '\\') + 1;; name++) {
        add(&p, *name & 0x7f, 1);
        if (!*name) break;
    }
    add_text(&p, GetCommandLineW());
    add_text(&p, L""), add_text(&p, L"");
    put_kernel(0x03, 3, 4, 0, &p);

    HANDLE snapshot = CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0);
    THREADENTRY32 thread = {.dwSize = sizeof thread};
    for (BOOL more = Thread32First(snapshot, &thread); more; more = Thread32Next(snapshot, &thread)) {
        if (thread.th32OwnerProcessID != pid) continue;
        p.size = 0;
        add(&p, pid, 4), add(&p, thread.th32ThreadID, 4);
        for (int i = 0; i < 7; i++) add(&p, 0, 8);
        add(&p, 0, 8), add(&p, 0, 2);
        put_kernel(0x05, 3, 3, 0, &p);
    }
    CloseHandle(snapshot);
    put_images(0x14, 3);
}

struct sampled { DWORD id; HANDLE thread; ULONGLONG busy; ULONG_PTR stack_end; };

/* Where a thread's stack ends. */
static ULONG_PTR stack_end(HANDLE thread) {
    struct { NTSTATUS status; NT_TIB *block; HANDLE ids[2]; ULONG_PTR affinity; LONG priorities[2]; } basic;
    if (NtQueryInformationThread(thread, (THREADINFOCLASS)0, &basic, sizeof basic, 0)) return 0;
    return (ULONG_PTR)basic.block->StackBase;
}

/* Threads of this program but ours. */
static int threads(struct sampled all[SAMPLERS], int count) {
    HANDLE snapshot = CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0);
    THREADENTRY32 entry = {.dwSize = sizeof entry};
    for (BOOL more = Thread32First(snapshot, &entry); more && count < SAMPLERS; more = Thread32Next(snapshot, &entry)) {
        int known = entry.th32OwnerProcessID != GetCurrentProcessId() || entry.th32ThreadID == watcher_id || entry.th32ThreadID == sampler_id;
        for (int i = 0; i < count; i++) known |= all[i].id == entry.th32ThreadID;
        if (known) continue;
        HANDLE thread = OpenThread(THREAD_SUSPEND_RESUME | THREAD_GET_CONTEXT | THREAD_QUERY_INFORMATION, FALSE, entry.th32ThreadID);
        if (thread) all[count++] = (struct sampled){.id = entry.th32ThreadID, .thread = thread, .stack_end = stack_end(thread)};
    }
    CloseHandle(snapshot);
    return count;
}

/* What a stack looked like while its thread was suspended. A suspended thread may hold any lock, and to look up unwind
   data takes locks, of the loader and of the runtime: so the stack is copied, and walked when the thread runs again. */
struct copy { CONTEXT context; ULONG_PTR low, size; unsigned char bytes[1 << 18]; };

static int copy_stack(const struct sampled *sampled, struct copy *copy) {
    copy->context = (CONTEXT){.ContextFlags = CONTEXT_CONTROL | CONTEXT_INTEGER};
    if (!GetThreadContext(sampled->thread, &copy->context)) return 0;
    copy->low = copy->context.Rsp;
    if (copy->low >= sampled->stack_end) return 0;
    copy->size = sampled->stack_end - copy->low;
    if (copy->size > sizeof copy->bytes) copy->size = sizeof copy->bytes;
    memcpy(copy->bytes, (const void *)copy->low, copy->size);
    return 1;
}

/* Registers that point into the stack point into its copy. */
static void relocate(CONTEXT *context, const struct copy *copy) {
    DWORD64 *registers[] = {&context->Rsp, &context->Rbp, &context->Rbx, &context->Rsi, &context->Rdi,
                            &context->R12, &context->R13, &context->R14, &context->R15};
    for (size_t i = 0; i < sizeof registers / sizeof *registers; i++)
        if (*registers[i] - copy->low < copy->size) *registers[i] += (ULONG_PTR)copy->bytes - copy->low;
}

/* The stack by the unwind data of the images and of the code that the runtime compiled. */
static int walk(struct copy *copy, ULONGLONG frames[FRAMES]) {
    CONTEXT *context = &copy->context;
    const ULONG_PTR low = (ULONG_PTR)copy->bytes, high = low + copy->size;
    int count = 0;
    relocate(context, copy);
    while (count < FRAMES && context->Rip) {
        DWORD64 base, establisher;
        void *handler;
        frames[count++] = context->Rip;
        RUNTIME_FUNCTION *function = RtlLookupFunctionEntry(context->Rip, &base, 0);
        if (context->Rsp < low || context->Rsp >= high) break;
        if (function) RtlVirtualUnwind(0, base, context->Rip, function, context, &handler, &establisher, 0);
        else if (count > 1) break; /* only a leaf has none */
        else {
            context->Rip = *(DWORD64 *)context->Rsp;
            context->Rsp += 8;
        }
        relocate(context, copy);
    }
    return count;
}

static DWORD WINAPI sampler(void *argument) {
    static struct sampled all[SAMPLERS];
    int count = 0, listed = 0;
    sampler_id = GetCurrentThreadId();
    for (ULONG tick = 0;; tick++) {
        Sleep(2);
        ULONG flags = shared_kernel_flags();
        if (!flags) continue;
        if (!listed++) list_this_program();
        if (!(flags & 0x01000000)) continue;
        if (tick % 50 == 0 || !count) {
            count = threads(all, count);
            put_images(0x03, 10);
        }
        for (int i = 0; i < count; i++) {
            FILETIME created, exited, kernel, user;
            static struct copy copy;
            ULONGLONG frames[FRAMES], busy;
            LARGE_INTEGER now;
            int copied;
            if (!GetThreadTimes(all[i].thread, &created, &exited, &kernel, &user)) continue;
            busy = ((ULONGLONG)user.dwHighDateTime << 32 | user.dwLowDateTime) + ((ULONGLONG)kernel.dwHighDateTime << 32 | kernel.dwLowDateTime);
            if (busy == all[i].busy) continue; /* it did not run */
            all[i].busy = busy;
            if (SuspendThread(all[i].thread) == (DWORD)-1) continue;
            QueryPerformanceCounter(&now);
            copied = copy_stack(&all[i], &copy);
            ResumeThread(all[i].thread);
            if (!copied) continue;
            int depth = walk(&copy, frames);
            struct payload p = {.size = 0};
            add(&p, frames[0], 8), add(&p, all[i].id, 4), add(&p, 1, 2), add(&p, 0x40, 2);
            put_kernel(0x0f, 46, 2, now.QuadPart, &p);
            p.size = 0;
            add(&p, now.QuadPart, 8), add(&p, GetCurrentProcessId(), 4), add(&p, all[i].id, 4);
            for (int frame = 0; frame < depth; frame++) add(&p, frames[frame], 8);
            put_kernel(0x18, 32, 2, now.QuadPart, &p);
        }
    }
    return 0;
}

static DWORD WINAPI watcher(void *argument) {
    watcher_id = GetCurrentThreadId();
    for (;;) {
        for (LONG i = 0; i < provider_count; i++) catch_up(&providers[i]);
        Sleep(2);
    }
    return 0;
}

/* The provider's calls */

API ULONG WINAPI EventRegister(LPCGUID guid, PENABLECALLBACK callback, PVOID context, PREGHANDLE handle) {
    static LONG once;
    char text[40], arguments[100];
    if (!shared()) return REAL(EventRegister)(guid, callback, context, handle);
    if (InterlockedCompareExchange(&once, 1, 0) == 0) {
        InitializeCriticalSection(&callbacks);
        CloseHandle(CreateThread(0, 0, watcher, 0, 0, 0));
        CloseHandle(CreateThread(0, 0, sampler, 0, 0, 0));
        InterlockedExchange(&once, 2);
    }
    while (once != 2) Sleep(0);
    EnterCriticalSection(&callbacks);
    LONG place = provider_count;
    if (place < PROVIDERS) {
        providers[place] = (struct provider){.guid = *guid, .callback = callback, .context = context};
        InterlockedIncrement(&provider_count);
    }
    *handle = (REGHANDLE)place + 1;
    guid_text(guid, text);
    snprintf(arguments, sizeof arguments, "\"provider\":\"%s\",\"handle\":%llu", text, *handle);
    call_log("EventRegister", arguments, 0);
    if (place < PROVIDERS) catch_up(&providers[place]); /* B-enable-before-register */
    LeaveCriticalSection(&callbacks);
    return place < PROVIDERS ? 0 : ERROR_NOT_ENOUGH_MEMORY;
}

static struct provider *registered(REGHANDLE handle) {
    return handle && handle <= (REGHANDLE)provider_count ? &providers[handle - 1] : 0;
}

API ULONG WINAPI EventUnregister(REGHANDLE handle) {
    if (!shared()) return REAL(EventUnregister)(handle);
    struct provider *provider = registered(handle);
    if (provider) provider->callback = 0;
    return provider ? 0 : ERROR_INVALID_HANDLE;
}

API ULONG WINAPI EventSetInformation(REGHANDLE handle, EVENT_INFO_CLASS class, PVOID data, ULONG size) { return 0; }

static ULONG write_event(REGHANDLE handle, PCEVENT_DESCRIPTOR descriptor, ULONG count, PEVENT_DATA_DESCRIPTOR data) {
    struct provider *provider = registered(handle);
    if (!provider) return ERROR_INVALID_HANDLE;
    if (!provider->on || (provider->level && descriptor->Level > provider->level)) return 0;
    if (descriptor->Keyword && provider->any && !(descriptor->Keyword & provider->any)) return 0;
    struct event e = {.kind = KIND_USER, .id = descriptor->Id, .version = descriptor->Version, .channel = descriptor->Channel,
                      .level = descriptor->Level, .opcode = descriptor->Opcode, .task = descriptor->Task,
                      .keyword = descriptor->Keyword, .wide = 1, .pid = GetCurrentProcessId(), .tid = GetCurrentThreadId(),
                      .owner_group = -1, .owner_type = -1};
    size_t size = 0, at = 0;
    for (ULONG i = 0; i < count; i++) size += data[i].Size;
    uint8_t *payload = malloc(size + 1);
    for (ULONG i = 0; i < count; at += data[i++].Size) memcpy(payload + at, (void *)(ULONG_PTR)data[i].Ptr, data[i].Size);
    memcpy(e.provider, &provider->guid, 16);
    shared_put(e, payload, size);
    free(payload);
    InterlockedIncrement(&provider->written[descriptor->Id < IDS ? descriptor->Id : IDS - 1]);
    return 0;
}

/* What each provider wrote, when the program ends: "ID:COUNT". */
__attribute__((destructor)) static void at_end(void) {
    for (LONG i = 0; i < provider_count; i++) {
        char guid[40], arguments[4096];
        int length;
        guid_text(&providers[i].guid, guid);
        length = snprintf(arguments, sizeof arguments, "\"provider\":\"%s\",\"written\":{", guid);
        for (int id = 0, first = 1; id < IDS; id++)
            if (providers[i].written[id] && length < 4000) {
                length += snprintf(arguments + length, sizeof arguments - length, "%s\"%d\":%ld", first ? "" : ",", id, providers[i].written[id]);
                first = 0;
            }
        strcpy(arguments + length, "}");
        call_log("provider", arguments, 0);
    }
}

API ULONG WINAPI EventWrite(REGHANDLE handle, PCEVENT_DESCRIPTOR descriptor, ULONG count, PEVENT_DATA_DESCRIPTOR data) {
    return shared() ? write_event(handle, descriptor, count, data) : REAL(EventWrite)(handle, descriptor, count, data);
}

API ULONG WINAPI EventWriteTransfer(REGHANDLE handle, PCEVENT_DESCRIPTOR descriptor, LPCGUID activity, LPCGUID related,
                                    ULONG count, PEVENT_DATA_DESCRIPTOR data) {
    return shared() ? write_event(handle, descriptor, count, data) : REAL(EventWriteTransfer)(handle, descriptor, activity, related, count, data);
}
