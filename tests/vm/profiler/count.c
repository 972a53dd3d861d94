// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * QEMU plugin that counts what the guest does, by translated block and by processor: with
 *   of=instructions  (default) instructions that it executes,
 *   of=stores        bytes that it stores,
 *   of=transfers     accesses to kernel memory for which a line comes from another processor's cache: stores to a line
 *                    that is there, and a processor's first load since then. Caches have no limit, are empty at the
 *                    beginning of a measurement, and their lines have 64 bytes.
 * The guest's program mark.S begins a measurement and, called again, ends it. Then a line "measurement N" is written to
 * the file out=, and lines of "address count..." (hexadecimal, decimal), with a count of each of processors=. All that
 * user space does is one line, address 1.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* QEMU's plugin interface, version 1. Its header is in no package of Debian 12. */
typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_R = 1, QEMU_PLUGIN_MEM_W, QEMU_PLUGIN_MEM_RW };
typedef uint32_t qemu_plugin_meminfo_t;
typedef void (*translated)(qemu_plugin_id_t id, struct qemu_plugin_tb* block);
typedef void (*executed)(unsigned int processor, void* context);
typedef void (*accessed)(unsigned int processor, qemu_plugin_meminfo_t access, uint64_t address, void* context);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, translated call);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb* block, enum qemu_plugin_op op, void* counter,
                                              uint64_t add);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb* block, executed call, enum qemu_plugin_cb_flags flags,
                                          void* context);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb* block);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb* block);
struct qemu_plugin_insn* qemu_plugin_tb_get_insn(const struct qemu_plugin_tb* block, size_t number);
const void* qemu_plugin_insn_data(const struct qemu_plugin_insn* instruction);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn* instruction);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn* instruction, executed call,
                                            enum qemu_plugin_cb_flags flags, void* context);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn* instruction, accessed call,
                                      enum qemu_plugin_cb_flags flags, enum qemu_plugin_mem_rw accesses, void* context);
unsigned int qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t access);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t access);

#define EXPORT __attribute__((visibility("default")))

EXPORT int qemu_plugin_version = 1;
EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void* info, int argc, char** argv);

/* Open addressing; never more than half full: a guest's boot and a benchmark translate some 200 000 blocks. */
enum { slots = 1 << 20, user_space = 1, max_processors = 8 };
struct slot {
    uint64_t address, counts[max_processors];
};
/* A block that was translated: several may begin at one address, with other lengths. */
struct block {
    struct slot* slot;
    uint64_t instructions;
};
static struct slot table[slots];
/* Processors translate at the same time. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long processors = 1;
static enum { of_instructions, of_stores, of_transfers } subject;
/* Lines of the guest's memory, by a hash of the address, for 4 GiB: two that share an entry are counted wrongly. */
enum { lines = 1 << 26, line_shift = 6 };
/* Bits of the processors whose caches have the line. */
static _Atomic uint8_t cached[lines];
static FILE* output;
/* Calls of mark.S. */
static unsigned long marks;

static struct slot* slot_of(uint64_t address)
{
    uint32_t at = (uint32_t)((address * UINT64_C(0x9e3779b97f4a7c15)) >> 44);

    pthread_mutex_lock(&lock);
    while (table[at].address && table[at].address != address)
        at = (at + 1) % slots;
    table[at].address = address;
    pthread_mutex_unlock(&lock);
    return &table[at];
}

static void on_executed(unsigned int processor, void* context)
{
    const struct block* block = context;

    block->slot->counts[processor % max_processors] += block->instructions;
}

static void on_stored(unsigned int processor, qemu_plugin_meminfo_t access, uint64_t address, void* context)
{
    struct slot* slot = context;

    (void)address;
    /* QEMU 7.2 calls it for loads, too, whatever was asked for. */
    if (qemu_plugin_mem_is_store(access))
        slot->counts[processor % max_processors] += UINT64_C(1) << qemu_plugin_mem_size_shift(access);
}

static void on_accessed(unsigned int processor, qemu_plugin_meminfo_t access, uint64_t address, void* context)
{
    const uint8_t own = (uint8_t)(1 << (processor % max_processors));
    struct slot* slot = context;
    _Atomic uint8_t* line;
    uint8_t before;

    if (!(address >> 63))
        return;
    line = &cached[((address >> line_shift) * UINT64_C(0x9e3779b97f4a7c15)) >> 38];
    before = qemu_plugin_mem_is_store(access) ? atomic_exchange(line, own) : atomic_fetch_or(line, own);
    if (qemu_plugin_mem_is_store(access) ? before & ~own : before && !(before & own))
        ++slot->counts[processor % max_processors];
}

static bool was_executed(const struct slot* slot)
{
    for (unsigned long i = 0; i < processors; ++i)
        if (slot->counts[i])
            return true;
    return false;
}

static void begin_measurement(void)
{
    for (uint32_t at = 0; at < slots; ++at)
        memset(table[at].counts, 0, sizeof(table[at].counts));
    memset((void*)cached, 0, sizeof(cached));
}

static void end_measurement(unsigned long number)
{
    fprintf(output, "measurement %lu\n", number);
    for (uint32_t at = 0; at < slots; ++at) {
        if (!was_executed(&table[at]))
            continue;
        fprintf(output, "%" PRIx64, table[at].address);
        for (unsigned long i = 0; i < processors; ++i)
            fprintf(output, " %" PRIu64, table[at].counts[i]);
        fprintf(output, "\n");
    }
    fflush(output);
}

/* Another processor that is counting at this moment may restore a block's former count, of before the measurement. */
static void on_mark(unsigned int processor, void* context)
{
    if (marks++ % 2 == 0)
        begin_measurement();
    else
        end_measurement(marks / 2);
}

/* The first instruction of mark.S, of either architecture. */
static bool is_mark(const struct qemu_plugin_insn* instruction)
{
    static const uint8_t amd64[] = {0x0f, 0x1f, 0x80, 'm', 'a', 'r', 'k'}, arm64[] = {0x7f, 0x2d, 0x03, 0xd5};
    const void* data = qemu_plugin_insn_data(instruction);

    switch (qemu_plugin_insn_size(instruction)) {
    case sizeof(amd64):
        return memcmp(data, amd64, sizeof(amd64)) == 0;
    case sizeof(arm64):
        return memcmp(data, arm64, sizeof(arm64)) == 0;
    default:
        return false;
    }
}

static void find_mark(struct qemu_plugin_tb* block)
{
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); ++i) {
        struct qemu_plugin_insn* instruction = qemu_plugin_tb_get_insn(block, i);

        if (is_mark(instruction))
            qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_mark, QEMU_PLUGIN_CB_NO_REGS, NULL);
    }
}

static void on_translated(qemu_plugin_id_t id, struct qemu_plugin_tb* block)
{
    const uint64_t address = qemu_plugin_tb_vaddr(block);
    const bool kernel = address >> 63;
    struct slot* slot = slot_of(kernel ? address : user_space);
    struct block* counted;

    if (!kernel)
        find_mark(block);
    if (subject != of_instructions) {
        for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); ++i)
            qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(block, i),
                                             subject == of_stores ? on_stored : on_accessed, QEMU_PLUGIN_CB_NO_REGS,
                                             subject == of_stores ? QEMU_PLUGIN_MEM_W : QEMU_PLUGIN_MEM_RW, slot);
        return;
    }
    if (processors == 1) {
        qemu_plugin_register_vcpu_tb_exec_inline(block, QEMU_PLUGIN_INLINE_ADD_U64, &slot->counts[0],
                                                 qemu_plugin_tb_n_insns(block));
        return;
    }
    /* Never freed: QEMU may still execute a block that it has dropped. */
    counted = malloc(sizeof(*counted));
    if (!counted)
        abort();
    *counted = (struct block){slot, qemu_plugin_tb_n_insns(block)};
    qemu_plugin_register_vcpu_tb_exec_cb(block, on_executed, QEMU_PLUGIN_CB_NO_REGS, counted);
}

int qemu_plugin_install(qemu_plugin_id_t id, const void* info, int argc, char** argv)
{
    const char* unknown = NULL;

    for (int i = 0; i < argc; ++i) {
        if (strncmp(argv[i], "out=", 4) == 0)
            output = fopen(argv[i] + 4, "w");
        else if (strncmp(argv[i], "processors=", 11) == 0)
            processors = strtoul(argv[i] + 11, NULL, 10);
        else if (strcmp(argv[i], "of=stores") == 0)
            subject = of_stores;
        else if (strcmp(argv[i], "of=transfers") == 0)
            subject = of_transfers;
        else if (strcmp(argv[i], "of=instructions") != 0)
            unknown = argv[i];
    }
    if (unknown || !output || processors < 1 || processors > max_processors) {
        fprintf(stderr, "count: argument %s is unknown, out=FILE cannot be written, or processors= is not 1 to %d\n",
                unknown ? unknown : "(none)", max_processors);
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translated);
    return 0;
}
