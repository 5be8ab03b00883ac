/* STANDIN_SAVE: the records that were handed out, as an .etl file of its own, uncompressed. It has times and ids as in the
   file that is played, so it is of use where these are not changed. */
#include "standin.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "etl.h"

enum { HEAD = 72, ROOM = 64 << 10, PROCESSORS = 256 };

static struct { uint8_t bytes[ROOM]; size_t used; } *open_buffers[2][PROCESSORS]; /* by session and processor */
static FILE *file;
static const uint8_t *first;
static int64_t sequence;

static void put(uint8_t *at, uint64_t value, size_t size) { memcpy(at, &value, size); }

static void write_out(int kernel, int processor) {
    uint8_t *b = open_buffers[kernel][processor]->bytes;
    size_t used = open_buffers[kernel][processor]->used;
    if (used == HEAD) return;
    memcpy(b, first, HEAD);
    put(b, ROOM, 4);
    put(b + 0x04, used, 4);
    put(b + 0x08, used, 4);
    put(b + 0x18, (uint64_t)++sequence, 8);
    put(b + 0x28, (uint64_t)processor, 2);
    put(b + 0x30, used, 4);
    put(b + 0x34, 0x20, 2);
    put(b + 0x36, 0, 2);
    memset(b + used, 0xff, ROOM - used);
    fwrite(b, 1, ROOM, file);
    open_buffers[kernel][processor]->used = HEAD;
}

int saving(void) {
    static int known = -1;
    if (known < 0) known = getenv("STANDIN_SAVE") != 0;
    return known;
}

void save(const struct etl *etl, const struct event *e, int kernel) {
    size_t size = (e->record_size + 7) & ~(size_t)7;
    if (e->processor >= PROCESSORS || HEAD + size > ROOM) return;
    if (!file) {
        uint32_t length;
        file = fopen(getenv("STANDIN_SAVE"), "wb");
        first = etl->bytes;
        memcpy(&length, first, 4);
        fwrite(first, 1, length, file);
    }
    if (!open_buffers[kernel][e->processor]) {
        open_buffers[kernel][e->processor] = malloc(sizeof **open_buffers[0]);
        open_buffers[kernel][e->processor]->used = HEAD;
    }
    if (open_buffers[kernel][e->processor]->used + size > ROOM) write_out(kernel, e->processor);
    memset(open_buffers[kernel][e->processor]->bytes + open_buffers[kernel][e->processor]->used, 0, size);
    memcpy(open_buffers[kernel][e->processor]->bytes + open_buffers[kernel][e->processor]->used, e->record, e->record_size);
    open_buffers[kernel][e->processor]->used += size;
}

void save_ends(void) {
    if (!file) return;
    for (int kernel = 0; kernel < 2; kernel++)
        for (int processor = 0; processor < PROCESSORS; processor++)
            if (open_buffers[kernel][processor]) write_out(kernel, processor);
    fclose(file);
}
