/* A program that counts as the runtime of .NET Framework 2.0 does, in the section that other programs read: `framework HOW
   SECONDS` says its process id, counts for so long, and ends. HOW is x64 or x86 (the layout), young (no collection ends), damaged (the
   size of the counters is wrong), empty (there is no section). Offsets are typed by hand from CoreCLR's ipcheader.h and
   perfcounterdefs.h. Numbers follow the clock, so that whoever reads them knows what they must say. */
#include <windows.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char *block;
static int is_32;

static void two(int at, unsigned value) { *(volatile uint16_t *)(block + at) = (uint16_t)value; }
static void four(int at, unsigned value) { *(volatile uint32_t *)(block + at) = value; }
static void eight(int at, uint64_t value) { *(volatile uint64_t *)(block + at) = value; }

/* Behind the header, at the offset of the layout. */
static void count(int in_32, int in_64, unsigned value) { four(is_32 ? 28 + in_32 : 32 + in_64, value); }
static void size(int in_32, int in_64, uint64_t value) {
    if (is_32) four(28 + in_32, (unsigned)value);
    else eight(32 + in_64, value);
}

static void header(const char *how) {
    two(0, 1);
    four(4, is_32 ? 0x134 : 0x1A0);
    two(is_32 ? 12 : 16, 2);
    two(is_32 ? 14 : 18, 50727);
    four(is_32 ? 16 : 20, 1);
    /* The first entry: an offset from behind the table in one layout, from the beginning in the other; and a size. */
    four(is_32 ? 20 : 24, is_32 ? 0 : 32);
    four(is_32 ? 24 : 28, !strcmp(how, "damaged") ? 10000 : is_32 ? 280 : 384);
    two(is_32 ? 28 : 32, is_32 ? 280 : 384);
    two(is_32 ? 30 : 34, 1);
}

int main(int number, char **arguments) {
    if (number != 3) return 2;
    const char *how = arguments[1];
    double seconds = atof(arguments[2]);
    is_32 = !strcmp(how, "x86");
    if (strcmp(how, "empty")) {
        char name[100];
        snprintf(name, sizeof name, "Global\\Cor_Public_IPCBlock_%lu", GetCurrentProcessId());
        HANDLE section = CreateFileMappingA(INVALID_HANDLE_VALUE, 0, PAGE_READWRITE, 0, is_32 ? 0x134 : 0x1A0, name);
        block = section ? MapViewOfFile(section, FILE_MAP_WRITE, 0, 0, 0) : 0;
        if (!block) return 3;
        header(how);
    }
    printf("%lu\n", GetCurrentProcessId());
    fflush(stdout);
    LARGE_INTEGER hz, start, now;
    QueryPerformanceFrequency(&hz);
    QueryPerformanceCounter(&start);
    for (double passed = 0; passed < seconds; Sleep(10)) {
        QueryPerformanceCounter(&now);
        passed = (double)(now.QuadPart - start.QuadPart) / (double)hz.QuadPart;
        if (!block) continue;
        /* 100 exceptions a second, 40 contentions; a quarter of the time goes to compiling, and wraps soon. */
        count(184, 280, (unsigned)(uint64_t)(passed * 100));
        count(200, 296, (unsigned)(uint64_t)(passed * 40));
        count(244, 340, (unsigned)(0xFFFFFFFF - 5000000 + (now.QuadPart - start.QuadPart) / 4));
        count(228, 324, 77);
        count(152, 240, 5);
        count(212, 308, 9);
        if (!strcmp(how, "young")) continue;
        /* Five collections a second: a million bytes each second, an eighth of the time. */
        uint64_t collections = (uint64_t)(passed * 5);
        size(64, 128, collections * 200000);
        size(4, 8, collections);
        size(8, 16, collections / 5);
        size(12, 24, 1);
        size(32, 64, 6291456);
        size(36, 72, 300000);
        size(40, 80, 200000);
        size(52, 104, 100000);
        count(76, 152, 25);
        count(80, 156, 200);
        size(28, 56, GetCurrentProcessId());
    }
    return 0;
}
