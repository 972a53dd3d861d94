// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * QEMU plugin that counts the instructions that the guest executes, by translated block and by processor. The guest's
 * program mark.S begins a measurement and, called again, ends it. Then a line "measurement N" is written to the file
 * out=, and lines of "address count..." (hexadecimal, decimal), with a count of each of processors=. All user-space
 * instructions are one line, address 1.
 */
#include <inttypes.h>
#include <pthread.h>
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
typedef void (*translated)(qemu_plugin_id_t id, struct qemu_plugin_tb* block);
typedef void (*executed)(unsigned int processor, void* context);
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

#define EXPORT __attribute__((visibility("default")))

EXPORT int qemu_plugin_version = 1;
EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void* info, int argc, char** argv);

/* Open addressing; never more than half full: a guest's boot and a benchmark translate some 200 000 blocks. */
enum { slots = 1 << 20, user_space = 1, max_processors = 8 };
struct slot {
    uint64_t address, instructions[max_processors];
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

    block->slot->instructions[processor % max_processors] += block->instructions;
}

static bool was_executed(const struct slot* slot)
{
    for (unsigned long i = 0; i < processors; ++i)
        if (slot->instructions[i])
            return true;
    return false;
}

static void begin_measurement(void)
{
    for (uint32_t at = 0; at < slots; ++at)
        memset(table[at].instructions, 0, sizeof(table[at].instructions));
}

static void end_measurement(unsigned long number)
{
    fprintf(output, "measurement %lu\n", number);
    for (uint32_t at = 0; at < slots; ++at) {
        if (!was_executed(&table[at]))
            continue;
        fprintf(output, "%" PRIx64, table[at].address);
        for (unsigned long i = 0; i < processors; ++i)
            fprintf(output, " %" PRIu64, table[at].instructions[i]);
        fprintf(output, "\n");
    }
    fflush(output);
}

/* Other processors may be counting: one block each is counted wrongly at most. */
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
    if (processors == 1) {
        qemu_plugin_register_vcpu_tb_exec_inline(block, QEMU_PLUGIN_INLINE_ADD_U64, &slot->instructions[0],
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
    for (int i = 0; i < argc; ++i) {
        if (strncmp(argv[i], "out=", 4) == 0)
            output = fopen(argv[i] + 4, "w");
        else if (strncmp(argv[i], "processors=", 11) == 0)
            processors = strtoul(argv[i] + 11, NULL, 10);
    }
    if (!output || processors < 1 || processors > max_processors) {
        fprintf(stderr, "count_instructions: out=FILE cannot be written, or processors= is not 1 to %d\n",
                max_processors);
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translated);
    return 0;
}
