/* Events between programs: what the one that is profiled writes reaches the one that records, as ETW carries it.

   STANDIN_SHARED names a section of memory. The program that records puts into it which providers it switches on;
   beside the other, the stand-in is the provider's side of ETW (provider.c): it calls the providers back, and puts what
   they write into the section. It also plays the kernel for that program: a list of its threads and images, and
   samples of those that run. */
#pragma once
#include <windows.h>
#include "etl.h"

/* True if STANDIN_SHARED is set, and the section is there. */
int shared(void);

/* The side that records: a provider is switched on or off, and the kernel's flags are set. */
void shared_enable(const GUID *provider, ULONG code, UCHAR level, ULONGLONG any, ULONGLONG all, const ULONG *pids, int count);
void shared_flags(ULONG flags);

/* The next event for a session of this kind after `at`, which it moves on. What it points to stays. */
int shared_next(int kernel, LONG64 *at, struct event *event);

/* The provider's side. */
struct command { GUID provider; ULONG code; UCHAR level; ULONGLONG any, all; ULONG pids[8]; int pid_count; };

/* How many commands there are, and one of them; 0 for programs that it is not for. */
LONG shared_commands(void);
int shared_command(LONG number, struct command *command);

/* The kernel's flags, as in EVENT_TRACE_PROPERTIES. */
ULONG shared_kernel_flags(void);

/* Puts an event into the section, with its payload. */
void shared_put(struct event event, const void *payload, size_t size);
