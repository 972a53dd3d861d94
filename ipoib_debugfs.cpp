// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The tables of an interface in debugfs: paths, neighbours, groups, connections.
#include <algorithm>

#include <ipoib/encapsulation.hpp>
#include <ipoib/interface.hpp>
#include <kernel/memory.hpp>
#include <kernel/time.hpp>
#include <shim/debugfs.h>

namespace ipoib {

namespace {

// Rows of a table, copied in one walk under the table's lock, then printed without the lock, in most files sorted.
// CONTEXT: process.
template <class Row>
class Snapshot {
public:
    // Allocates space for rows. Returns false if there is no memory.
    [[nodiscard]] bool allocate(std::size_t rows)
    {
        space_ = rows;
        return rows == 0 || rows_.allocate(rows);
    }
    // Ignores rows beyond the allocated space: they were added to the table after it was counted.
    void add(const Row& row)
    {
        if (used_ < space_)
            rows_[used_++] = row;
    }
    // Sorts by Row::operator<.
    void sort() { std::sort(begin(), end()); }
    Row* begin() const { return used_ ? &rows_[0] : nullptr; }
    Row* end() const { return begin() + used_; }

private:
    kernel::Array<Row> rows_;
    std::size_t space_ = 0, used_ = 0;
};

void show_gid(seq_file* file, const Gid& gid)
{
    shim_seq_printf(file, "GID: %x:%x:%x:%x:%x:%x:%x:%x\n", gid.group(0), gid.group(1), gid.group(2), gid.group(3),
                    gid.group(4), gid.group(5), gid.group(6), gid.group(7));
}

// Writes the file _path, in the in-tree driver's format.
kernel::Status show_paths(PathTable& table, seq_file* file)
{
    struct Row {
        Gid gid;
        bool usable;
        std::uint8_t sl;
        std::uint32_t dlid;
        unsigned int mbps;
        bool operator<(const Row& other) const { return gid < other.gid; }
    };
    std::size_t count = 0;
    table.for_each([&count](Path&) { ++count; });
    Snapshot<Row> rows;
    if (!rows.allocate(count))
        return kernel::no_memory;
    table.for_each([&rows](Path& path) TA_REQUIRES(path_lock) {
        rows.add(path.life.usable() ? Row{path.key(), true, shim_path_sl(path.record()), shim_path_dlid(path.record()),
                                          shim_ib_rate_to_mbps(path.record())}
                                    : Row{path.key(), false, 0, 0, 0});
    });
    rows.sort();
    for (const Row& row : rows) {
        show_gid(file, row.gid);
        shim_seq_printf(file, "  complete: %6s\n", row.usable ? "yes" : "no");
        if (row.usable)
            shim_seq_printf(file, "  DLID:     0x%04x\n  SL: %12d\n  rate: %8u.%u Gb/sec\n", row.dlid, row.sl,
                            row.mbps / 1000, row.mbps % 1000);
        shim_seq_printf(file, "\n");
    }
    return {};
}

// Writes the file _neigh: a line for each neighbour, with its address, how its packets are sent, and its age.
kernel::Status show_neighbours(PathTable& table, seq_file* file)
{
    struct Row {
        HwAddr address;
        const char* way;
        unsigned long last_used;
        bool operator<(const Row& other) const
        {
            const Gid gid = address.gid(), others = other.address.gid();
            return gid < others || (gid == others && address.qpn() < other.address.qpn());
        }
    };
    std::size_t count = 0;
    table.for_each([&count](Path& path) TA_REQUIRES(path_lock) {
        for ([[maybe_unused]] Neighbour& neighbour : path.neighbours)
            ++count;
    });
    Snapshot<Row> rows;
    if (!rows.allocate(count))
        return kernel::no_memory;
    table.for_each([&rows](Path& path) TA_REQUIRES(path_lock) {
        for (Neighbour& neighbour : path.neighbours)
            rows.add({neighbour.key(),
                      neighbour.connection.load() ? "connection"
                      : neighbour.ah.load() || (path.life.usable() && (!neighbour.attempt || neighbour.refused))
                          ? "datagram"
                          : "waiting",
                      neighbour.last_used.load_relaxed()});
    });
    rows.sort();
    for (const Row& row : rows)
        shim_seq_printf(file, "%20phC %-10s unused for %lu s\n", row.address.bytes, row.way,
                        kernel::elapsed(row.last_used, shim_jiffies()) / kernel::seconds(1));
    return {};
}

// Writes the file _mcg, in the in-tree driver's format.
kernel::Status show_groups(GroupSet& groups, seq_file* file)
{
    struct Row {
        Gid mgid;
        unsigned long created;
        unsigned int waiting;
        bool complete, send_only;
        bool operator<(const Row& other) const { return mgid < other.mgid; }
    };
    std::size_t count = 0;
    groups.for_each([&count](Group&) { ++count; });
    Snapshot<Row> rows;
    if (!rows.allocate(count))
        return kernel::no_memory;
    groups.for_each([&rows](Group& group) {
        rows.add(
            {group.key(), group.created, group.waiting.length(), group.ah.load() != nullptr, group.join.send_only()});
    });
    rows.sort();
    for (const Row& row : rows) {
        show_gid(file, row.mgid);
        shim_seq_printf(file, "  created: %10ld\n  queuelen: %9u\n  complete: %9s\n  send_only: %8s\n\n",
                        static_cast<long>(row.created), row.waiting, row.complete ? "yes" : "no",
                        row.send_only ? "yes" : "no");
    }
    return {};
}

struct ConnectionRow {
    const char* side;
    const char* state;
    Gid peer;
    std::uint32_t qpn;
    unsigned int mtu, queue;
    unsigned long since;
    // The queue of the netdev that handles its completions.
    unsigned int index;
    bool without_checksums;
};

TA_REQUIRES(path_lock) ConnectionRow row_of(const ActiveConnection& connection)
{
    return {.side = "active",
            .state = ActiveLife::name(connection.life.state()),
            .peer = connection.peer.gid(),
            .qpn = connection.peer.qpn(),
            .mtu = connection.max_message ? ip_mtu(connection.max_message) : 0,
            .queue = connection.waiting.length() + connection.outstanding(),
            .since = connection.since,
            .index = connection.queue ? connection.queue->index() : 0,
            .without_checksums = connection.without_checksums};
}

TA_REQUIRES(path_lock) ConnectionRow row_of(const PassiveConnection& connection, unsigned int mtu)
{
    return {.side = "passive",
            .state = PassiveLife::name(connection.life.state()),
            .peer = connection.peer.gid,
            .qpn = connection.peer.qpn,
            .mtu = mtu,
            .queue = connection.ring.outstanding(),
            .since = connection.since,
            .index = connection.queue.index(),
            .without_checksums = connection.without_checksums};
}

// Writes the file _cm: the counters, and a line for each connection.
kernel::Status show_connections(Interface& interface, seq_file* file)
{
    const auto count_of = [](const kernel::SharedCounter& counter) {
        return static_cast<unsigned long long>(counter.value());
    };
    ActiveConnections& active = interface.connections.active;
    PassiveConnections& passive = interface.connections.passive;
    shim_seq_printf(
        file,
        "req_sent %llu established %llu req_failed %llu disconnected %llu passive_accepted %llu passive_rejected %llu "
        "malformed %llu\n",
        count_of(active.requests_sent), count_of(active.established), count_of(active.requests_failed),
        count_of(active.disconnected), count_of(passive.accepted), count_of(passive.rejected),
        count_of(interface.connections.malformed));
    std::size_t count = 0;
    {
        PathTable::Guard guard(interface.paths);
        for ([[maybe_unused]] ActiveConnection& connection : active.list())
            ++count;
        count += passive.count();
    }
    Snapshot<ConnectionRow> rows;
    if (!rows.allocate(count))
        return kernel::no_memory;
    {
        PathTable::Guard guard(interface.paths);
        for (ActiveConnection& connection : active.list())
            rows.add(row_of(connection));
        for (PassiveConnection& connection : passive.list())
            rows.add(row_of(connection, interface.rx[0].srq.max_mtu()));
    }
    const unsigned long now = shim_jiffies();
    for (const ConnectionRow& row : rows)
        shim_seq_printf(file, "%-7s %pI6 qpn 0x%06x state %-11s mtu %5u queue %4u age %lu on %u%s\n", row.side,
                        row.peer.bytes, row.qpn, row.state, row.mtu, row.queue,
                        kernel::elapsed(row.since, now) / kernel::seconds(1), row.index,
                        row.without_checksums ? " icrc" : "");
    return {};
}

} // namespace

void DebugFiles::create()
{
    created_ = true;
    rename();
}

void DebugFiles::rename()
{
    if (!created_)
        return;
    for (int which = 0; which < IPOIB_DEBUG_FILES; ++which) {
        files_[which].reset();
        files_[which].reset(shim_helper_debugfs_create_file(dev_, static_cast<ipoib_debug_file>(which)));
    }
}

void DebugFiles::remove()
{
    created_ = false;
    for (auto& file : files_)
        file.reset();
}

} // namespace ipoib

int ipoib_debug_show(net_device* dev, ipoib_debug_file which, seq_file* file)
{
    auto& interface = ipoib::Interface::of(dev);
    switch (which) {
    case IPOIB_DEBUG_CM:
        return ipoib::show_connections(interface, file).code();
    case IPOIB_DEBUG_MCG:
        return ipoib::show_groups(interface.groups, file).code();
    case IPOIB_DEBUG_NEIGH:
        return ipoib::show_neighbours(interface.paths, file).code();
    case IPOIB_DEBUG_PATH:
        return ipoib::show_paths(interface.paths, file).code();
    case IPOIB_DEBUG_FILES:
        break;
    }
    return 0;
}

TA_REQUIRES(kernel::rtnl) void ipoib_netdev_renamed(net_device* dev) { ipoib::Interface::of(dev).debug_files.rename(); }
