// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * QEMU plugin that counts the instructions that the guest executes, by translated block and by processor: at the end it
 * writes lines of "address count..." (hexadecimal, decimal) to the file out=, with a count of each of processors=.
 * All user-space instructions are one line, address 1.
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
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
typedef void (*translated)(qemu_plugin_id_t id, struct qemu_plugin_tb* block);
typedef void (*executed)(unsigned int processor, void* context);
typedef void (*ended)(qemu_plugin_id_t id, void* context);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, translated call);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb* block, enum qemu_plugin_op op, void* counter,
                                              uint64_t add);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb* block, executed call, enum qemu_plugin_cb_flags flags,
                                          void* context);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, ended call, void* context);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb* block);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb* block);

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
static char* output;

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

static void on_translated(qemu_plugin_id_t id, struct qemu_plugin_tb* block)
{
    const uint64_t address = qemu_plugin_tb_vaddr(block);
    const bool kernel = address >> 63;
    struct slot* slot = slot_of(kernel ? address : user_space);
    struct block* counted;

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

static bool was_executed(const struct slot* slot)
{
    for (unsigned long i = 0; i < processors; ++i)
        if (slot->instructions[i])
            return true;
    return false;
}

static void on_end(qemu_plugin_id_t id, void* context)
{
    FILE* file = fopen(output, "w");

    if (!file) {
        perror(output);
        return;
    }
    for (uint32_t at = 0; at < slots; ++at) {
        if (!was_executed(&table[at]))
            continue;
        fprintf(file, "%" PRIx64, table[at].address);
        for (unsigned long i = 0; i < processors; ++i)
            fprintf(file, " %" PRIu64, table[at].instructions[i]);
        fprintf(file, "\n");
    }
    fclose(file);
}

int qemu_plugin_install(qemu_plugin_id_t id, const void* info, int argc, char** argv)
{
    for (int i = 0; i < argc; ++i) {
        if (strncmp(argv[i], "out=", 4) == 0)
            output = strdup(argv[i] + 4);
        else if (strncmp(argv[i], "processors=", 11) == 0)
            processors = strtoul(argv[i] + 11, NULL, 10);
    }
    if (!output || processors < 1 || processors > max_processors) {
        fprintf(stderr, "count_instructions: out=FILE is missing, or processors= is not 1 to %d\n", max_processors);
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translated);
    qemu_plugin_register_atexit_cb(id, on_end, NULL);
    return 0;
}
