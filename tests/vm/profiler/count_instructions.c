// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * QEMU plugin that counts the instructions that the guest executes, by translated block: at the end it writes lines of
 * "address count" (hexadecimal, decimal) to the file out=. All user-space instructions are one line, address 1.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* QEMU's plugin interface, version 1. Its header is in no package of Debian 12. */
typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };
typedef void (*translated)(qemu_plugin_id_t id, struct qemu_plugin_tb* block);
typedef void (*ended)(qemu_plugin_id_t id, void* context);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, translated call);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb* block, enum qemu_plugin_op op, void* counter,
                                              uint64_t add);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, ended call, void* context);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb* block);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb* block);

#define EXPORT __attribute__((visibility("default")))

EXPORT int qemu_plugin_version = 1;
EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void* info, int argc, char** argv);

/* Open addressing; never more than half full: a guest's boot and a benchmark translate some 200 000 blocks. */
enum { slots = 1 << 20, user_space = 1 };
static struct slot {
    uint64_t address, instructions;
} table[slots];
static char* output;

static struct slot* slot_of(uint64_t address)
{
    uint32_t at = (uint32_t)((address * UINT64_C(0x9e3779b97f4a7c15)) >> 44);

    while (table[at].address && table[at].address != address)
        at = (at + 1) % slots;
    table[at].address = address;
    return &table[at];
}

static void on_translated(qemu_plugin_id_t id, struct qemu_plugin_tb* block)
{
    const uint64_t address = qemu_plugin_tb_vaddr(block);
    const bool kernel = address >> 63;

    qemu_plugin_register_vcpu_tb_exec_inline(block, QEMU_PLUGIN_INLINE_ADD_U64,
                                             &slot_of(kernel ? address : user_space)->instructions,
                                             qemu_plugin_tb_n_insns(block));
}

static void on_end(qemu_plugin_id_t id, void* context)
{
    FILE* file = fopen(output, "w");

    if (!file) {
        perror(output);
        return;
    }
    for (uint32_t at = 0; at < slots; ++at)
        if (table[at].instructions)
            fprintf(file, "%" PRIx64 " %" PRIu64 "\n", table[at].address, table[at].instructions);
    fclose(file);
}

int qemu_plugin_install(qemu_plugin_id_t id, const void* info, int argc, char** argv)
{
    for (int i = 0; i < argc; ++i)
        if (strncmp(argv[i], "out=", 4) == 0)
            output = strdup(argv[i] + 4);
    if (!output) {
        fprintf(stderr, "count_instructions: out=FILE is missing\n");
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translated);
    qemu_plugin_register_atexit_cb(id, on_end, NULL);
    return 0;
}
