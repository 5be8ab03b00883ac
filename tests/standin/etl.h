/* The events of an .etl file, for a stand-in of the ETW API to play. Written apart from the reader under test. */
#pragma once
#include <stdint.h>
#include <stddef.h>

enum kind { KIND_KERNEL, KIND_USER, KIND_MERGED };

/* One record of the file, its times and pids as they will be played. */
struct event {
    int64_t time;           /* raw clock */
    int64_t order;          /* place in the file: breaks ties */
    enum kind kind;
    uint8_t group, type;    /* of kernel records */
    uint8_t version, level, opcode, channel, wide; /* wide: 64-bit writer */
    uint16_t id, task, processor, flags;
    uint32_t pid, tid;
    uint64_t keyword;
    uint8_t provider[16], activity[16];
    const uint8_t *items;   /* extended items as in the file */
    size_t items_size;
    uint8_t *payload;
    uint16_t payload_size;
    const uint8_t *record;  /* the whole record as in the file */
    size_t record_size;
    int owner_group, owner_type; /* of a stack: the kernel event it belongs to; -1: none */
    uint8_t owner_provider_is_kernel;
    uint8_t at_end;         /* of the kernel's list when its session ends */
    uint8_t played;
};

struct etl {
    struct event *events;   /* in order of time */
    size_t count;
    int64_t start_time, start_filetime, frequency;
    uint32_t processors, build;
    const uint8_t *header;  /* the payload of the first record, of a 64-bit system */
    uint8_t *bytes;
};

/* The whole file, or 0 where it cannot be read. `frequency` other than 0 plays its clock at that many ticks a second;
   `pid_from` is played as `pid_to` where that is not 0, and the other way round. */
struct etl *etl_read(const char *path, int64_t frequency, uint32_t pid_from, uint32_t pid_to);

/* The task GUID of a kernel record. */
void kernel_guid(uint8_t group, uint8_t type, uint8_t guid[16]);
