#include "etl.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint16_t u16(const uint8_t *p) { uint16_t v; memcpy(&v, p, 2); return v; }
static uint32_t u32(const uint8_t *p) { uint32_t v; memcpy(&v, p, 4); return v; }
static uint64_t u64(const uint8_t *p) { uint64_t v; memcpy(&v, p, 8); return v; }

/* Plain LZ77 of [MS-XCA] 2.4: flag words from the top bit down, 16-bit matches, lengths in shared nibbles. */
static int expand(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size) {
    size_t i = 0, o = 0, nibble = 0;
    uint32_t flags = 0;
    int left = 0;
    while (o < out_size) {
        if (left == 0) {
            if (i + 4 > in_size) break;
            flags = u32(in + i); i += 4; left = 32;
        }
        left--;
        if (!(flags >> left & 1)) {
            if (i >= in_size) break;
            out[o++] = in[i++];
            continue;
        }
        if (i + 2 > in_size) break;
        uint32_t match = u16(in + i); i += 2;
        size_t distance = (match >> 3) + 1, length = match & 7;
        if (length == 7) {
            if (nibble == 0) { nibble = i; length = in[i++] & 15; }
            else { length = in[nibble] >> 4; nibble = 0; }
            if (length == 15) {
                length = in[i++];
                if (length == 255) {
                    length = u16(in + i); i += 2;
                    if (length == 0) { length = u32(in + i); i += 4; }
                    length -= 22;
                } else length += 15 - 15;
                length += 15;
            }
            length += 7;
        }
        length += 3;
        if (distance > o) return 0;
        while (length-- && o < out_size) { out[o] = out[o - distance]; o++; }
    }
    return o == out_size;
}

void kernel_guid(uint8_t group, uint8_t type, uint8_t guid[16]) {
    static const struct { uint8_t group; uint8_t guid[16]; } known[] = {
        {0x00, {0x00,0xd9,0xfd,0x68,0x3e,0x4a,0xd1,0x11,0x84,0xf4,0x00,0x00,0xf8,0x04,0x64,0xe3}},
        {0x03, {0xd0,0xa8,0x6f,0x3d,0x05,0xfe,0xd0,0x11,0x9d,0xda,0x00,0xc0,0x4f,0xd7,0xba,0x7c}},
        {0x05, {0xd1,0xa8,0x6f,0x3d,0x05,0xfe,0xd0,0x11,0x9d,0xda,0x00,0xc0,0x4f,0xd7,0xba,0x7c}},
        {0x0b, {0x65,0x3a,0x85,0x01,0x8f,0x41,0x36,0x4f,0xae,0xfc,0xdc,0x0f,0x1d,0x2f,0xd2,0x35}},
        {0x0f, {0xb4,0xbf,0x1d,0xce,0x7e,0x13,0xa6,0x4d,0x87,0xb0,0x3f,0x59,0xaa,0x10,0x2c,0xbc}},
        {0x14, {0x1d,0x5d,0xb1,0x2c,0xc1,0x5f,0xd2,0x11,0xab,0xe1,0x00,0xa0,0xc9,0x11,0xf5,0x18}},
        {0x18, {0x46,0xfe,0xf2,0xde,0xd6,0x7b,0x80,0x4b,0xbd,0x94,0xf5,0x7f,0xe2,0x0d,0x0c,0xe3}},
    };
    if (group == 0x03 && type == 10) group = 0x14; /* image load */
    memset(guid, 0, 16);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].group == group) memcpy(guid, known[i].guid, 16);
}

struct growing { struct event *at; size_t count, room; };

static struct event *more(struct growing *all) {
    if (all->count == all->room) {
        all->room = all->room ? all->room * 2 : 1 << 16;
        all->at = realloc(all->at, all->room * sizeof *all->at);
    }
    struct event *event = &all->at[all->count];
    memset(event, 0, sizeof *event);
    event->order = (int64_t)all->count++;
    event->pid = event->tid = 0xffffffff;
    event->owner_group = event->owner_type = -1;
    return event;
}

static void buffer(struct growing *all, uint8_t *at, size_t size, uint16_t processor) {
    size_t offset = 72, length;
    for (; offset + 8 <= size; offset += (length + 7) & ~(size_t)7) {
        uint8_t *r = at + offset;
        uint8_t type = r[2], marker = r[3];
        if (!(marker & 0x80) || u32(r) == 0xffffffff) return;
        int full = type == 0x0a || type == 0x14 || type == 0x0b || type == 0x15;
        int manifest = type == 0x12 || type == 0x13;
        int system = type >= 0x01 && type <= 0x04, perf = type == 0x10 || type == 0x11;
        length = system || perf ? u16(r + 4) : u16(r);
        if (length < 8 || offset + length > size) return;
        if (marker == 0x90 || !(full || manifest || system || perf)) continue;
        struct event *e = more(all);
        size_t head;
        e->processor = processor;
        e->record = r;
        e->record_size = length;
        if (system || perf) {
            e->kind = KIND_KERNEL;
            e->version = (uint8_t)u16(r);
            e->type = e->opcode = r[6];
            e->group = r[7];
            e->wide = type == 0x02 || type == 0x04 || type == 0x11;
            if (system) {
                e->tid = u32(r + 8); e->pid = u32(r + 12); e->time = (int64_t)u64(r + 16);
                head = type >= 0x03 ? 24 : 32;
            } else {
                e->time = (int64_t)u64(r + 8);
                head = 16 + 8 * ((u16(r) >> 15) + (u16(r) >> 8 & 7));
            }
            kernel_guid(e->group, e->type, e->provider);
        } else if (full) {
            e->kind = KIND_MERGED;
            e->time = (int64_t)u64(r + 16);
            head = 48;
        } else {
            e->kind = KIND_USER;
            e->flags = u16(r + 4);
            e->tid = u32(r + 8); e->pid = u32(r + 12); e->time = (int64_t)u64(r + 16);
            memcpy(e->provider, r + 24, 16);
            e->id = u16(r + 40); e->version = r[42]; e->channel = r[43]; e->level = r[44]; e->opcode = r[45];
            e->task = u16(r + 46); e->keyword = u64(r + 48);
            memcpy(e->activity, r + 64, 16);
            e->wide = type == 0x13;
            head = 80;
            if (e->flags & 1) {
                int again = 1;
                while (again && head + 8 <= length) {
                    again = u16(r + head + 4) & 1;
                    head += u16(r + head) < 8 ? 8 : u16(r + head);
                }
                e->items = r + 80;
                e->items_size = (head < length ? head : length) - 80;
            }
        }
        if (head > length) head = length;
        e->payload = r + head;
        e->payload_size = (uint16_t)(length - head);
    }
}

static int by_time(const void *a, const void *b) {
    const struct event *x = a, *y = b;
    if (x->time != y->time) return x->time < y->time ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

static int is_end(const struct event *e) {
    return e->kind == KIND_KERNEL && ((e->group == 0x00 && e->type == 32) || (e->group == 0x03 && e->type == 4)
        || (e->group == 0x05 && e->type == 4) || (e->group == 0x14 && e->type == 4));
}

/* Which event a stack belongs to: same time, and same thread where the event knows it. */
static void find_owner(struct etl *etl, struct event *stack) {
    if (stack->payload_size < 16) return;
    int64_t time = (int64_t)u64(stack->payload);
    uint32_t tid = u32(stack->payload + 12);
    size_t low = 0, high = etl->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (etl->events[middle].time < time) low = middle + 1; else high = middle;
    }
    for (; low < etl->count && etl->events[low].time == time; low++) {
        struct event *e = &etl->events[low];
        if (e->kind != KIND_KERNEL || e->group == 0x18) continue;
        uint32_t of = e->tid;
        if (e->group == 0x0f && e->type == 46 && e->payload_size >= 16) of = u32(e->payload + (e->wide ? 8 : 4));
        if (e->group == 0x05 && e->type == 36 && e->payload_size >= 4) of = u32(e->payload);
        if (of == tid || of == 0xffffffff) {
            stack->owner_group = e->group;
            stack->owner_type = e->type;
            if (of == tid) return;
        }
    }
}

/* Two processes change their ids: there may be one of the new id in the recording. */
static uint32_t swapped(uint32_t pid, uint32_t one, uint32_t other) { return pid == one ? other : pid == other ? one : pid; }

static void swap_pid(struct event *e, size_t offset, uint32_t one, uint32_t other) {
    if (offset + 4 > e->payload_size) return;
    uint32_t pid = swapped(u32(e->payload + offset), one, other);
    memcpy(e->payload + offset, &pid, 4);
}

static void swap_pids(struct event *e, uint32_t one, uint32_t other) {
    e->pid = swapped(e->pid, one, other);
    if (e->kind != KIND_KERNEL) return;
    size_t p = e->wide ? 8 : 4;
    if (e->group == 0x03 && e->type == 10) swap_pid(e, 2 * p, one, other);
    else if (e->group == 0x03 && e->version >= 1) { swap_pid(e, p, one, other); swap_pid(e, p + 4, one, other); }
    else if (e->group == 0x05 && (e->type <= 4 || e->type == 72)) swap_pid(e, 0, one, other);
    else if (e->group == 0x14) swap_pid(e, 2 * p, one, other);
    else if (e->group == 0x18 && (e->type == 32 || e->type == 37 || e->type == 38)) swap_pid(e, 8, one, other);
}

struct etl *etl_read(const char *path, int64_t frequency, uint32_t pid_from, uint32_t pid_to) {
    FILE *file = fopen(path, "rb");
    if (!file) return 0;
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)_ftelli64(file), offset = 0;
    rewind(file);
    struct etl *etl = calloc(1, sizeof *etl);
    etl->bytes = malloc(size);
    if (fread(etl->bytes, 1, size, file) != size) return 0;
    fclose(file);
    struct growing all = {0};
    while (offset + 72 <= size) {
        uint8_t *b = etl->bytes + offset;
        size_t length = u32(b), saved = u32(b + 4);
        if (!saved) saved = u32(b + 0x30); /* the first buffer of a relogged file */
        uint16_t flags = u16(b + 0x34), processor = flags & 0x20 ? u16(b + 0x28) & 0x7ff : b[0x28];
        if (length < 72 || offset + length > size) break;
        if (flags & 0x40) {
            uint8_t *whole = malloc(saved);
            if (!expand(b + 72, length - 72, whole + 72, saved - 72)) return 0;
            buffer(&all, whole, saved, processor);
        } else buffer(&all, b, saved < length ? saved : length, processor);
        offset += length;
    }
    if (!all.count || all.at[0].group != 0 || all.at[0].type != 0 || all.at[0].payload_size < 280) return 0;
    struct event *first = &all.at[0];
    etl->header = first->payload;
    etl->build = u32(first->payload + 8);
    etl->processors = u32(first->payload + 12);
    etl->frequency = (int64_t)u64(first->payload + 256);
    etl->start_filetime = (int64_t)u64(first->payload + 264);
    etl->start_time = first->time;
    etl->events = all.at;
    etl->count = all.count;
    qsort(etl->events, etl->count, sizeof *etl->events, by_time);
    /* Another session may have ended at the beginning: the list at this one's end comes in the second half. */
    for (size_t i = etl->count / 2; i < etl->count; i++) etl->events[i].at_end = (uint8_t)is_end(&etl->events[i]);
    for (size_t i = 0; i < etl->count; i++) {
        struct event *e = &etl->events[i];
        if (e->kind == KIND_KERNEL && e->group == 0x18 && (e->type == 32 || e->type == 37 || e->type == 38)) find_owner(etl, e);
    }
    for (size_t i = 0; i < etl->count; i++) {
        struct event *e = &etl->events[i];
        if (pid_to) swap_pids(e, pid_from, pid_to);
        if (frequency) {
#define SCALED(t) (int64_t)((__int128)(t) * frequency / etl->frequency)
            e->time = SCALED(e->time);
            if (e->kind == KIND_KERNEL && e->group == 0x18 && (e->type == 32 || e->type == 37 || e->type == 38) && e->payload_size >= 8) {
                int64_t owner = SCALED((int64_t)u64(e->payload));
                memcpy(e->payload, &owner, 8);
            }
        }
    }
    if (frequency) {
        etl->start_time = SCALED(etl->start_time);
        etl->frequency = frequency;
    }
    return etl;
}
