// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Main program: worker processes run seeds, since a crash may end them; a failing seed is repeated with fewer faults
// and less time, as long as it fails.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "watched.hpp"
#include "world.hpp"

#ifdef COVERAGE
// Writes gcov's counters, which _exit() does not.
extern "C" void __gcov_dump();
#endif

namespace sim {

Watched* watched = nullptr;
bool noting = false;

namespace {

// A seed that takes longer spins where no check runs.
constexpr unsigned int max_seconds_for_a_seed = 600;

std::string when_and_who()
{
    if (!world)
        return "";
    char text[100];
    const Time now = world->scheduler.now();
    std::snprintf(text, sizeof(text), "%5llu.%06llu ", static_cast<unsigned long long>(now / second),
                  static_cast<unsigned long long>(now % second / microsecond));
    const Fiber* fiber = world->scheduler.current();
    return text + (fiber ? fiber->name : std::string("event"));
}

} // namespace

void note(const char* format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    std::printf("%s: ", when_and_who().c_str());
    std::vprintf(format, arguments);
    std::printf("\n");
    va_end(arguments);
}

void fail(const char* format, ...)
{
    char text[3000];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    std::snprintf(watched->failure, sizeof(watched->failure), "%s: %s", when_and_who().c_str(), text);
    if (world)
        watched->failed_at = world->scheduler.now();
    if (noting)
        std::printf("%s\n", watched->failure);
    std::fflush(nullptr);
    // For debuggers.
    if (std::getenv("SIM_ABORT"))
        std::abort();
    _exit(1);
}

namespace {

Watched* share()
{
    void* memory = mmap(nullptr, sizeof(Watched), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        std::abort();
    return static_cast<Watched*>(memory);
}

// Reason why a process failed, as text.
std::string reason(const Watched& told, int status)
{
    if (told.failure[0])
        return told.failure;
    if (WIFSIGNALED(status))
        return std::string("crashed: ") + strsignal(WTERMSIG(status));
    return "ended with status " + std::to_string(WEXITSTATUS(status));
}

struct Failure {
    std::uint64_t seed;
    std::string why;
};

// Runs one seed in a process of its own, as a replay does: the driver's static objects are in their initial state. Ends
// this process with that one's status, unless the seed passed.
void run_apart(std::uint64_t seed, const Options& options)
{
    const pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(max_seconds_for_a_seed);
        run_seed(seed, options);
#ifdef COVERAGE
        __gcov_dump();
#endif
        _exit(0);
    }
    int status = 1;
    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status))
        raise(WTERMSIG(status));
    if (status != 0)
        _exit(1);
}

// Starts a process that runs seeds from first on, every step-th.
pid_t start_worker(Watched* shared, std::uint64_t first, std::uint64_t end, std::uint64_t step, const Options& options)
{
    std::fflush(nullptr);
    const pid_t pid = fork();
    if (pid != 0)
        return pid;
    watched = shared;
    for (std::uint64_t seed = first; seed < end; seed += step) {
        watched->seed = seed;
        run_apart(seed, options);
        ++watched->seeds_done;
    }
    watched->seed = 0;
    _exit(0);
}

// Runs one seed; returns the failure, or an empty text.
std::string try_seed(std::uint64_t seed, const Options& options, Time* failed_at = nullptr)
{
    Watched* shared = share();
    const pid_t pid = start_worker(shared, seed, seed + 1, 1, options);
    int status = 0;
    waitpid(pid, &status, 0);
    std::string why;
    if (status != 0)
        why = reason(*shared, status);
    if (failed_at)
        *failed_at = shared->failed_at;
    munmap(shared, sizeof(Watched));
    return why;
}

std::string text_of(const std::set<std::size_t>& indices)
{
    std::string text;
    for (const std::size_t index : indices)
        text += (text.empty() ? "" : ",") + std::to_string(index);
    return text;
}

// Whether the seed fails with these options, in some order of events; if so, options are set to that order.
bool still_fails(std::uint64_t seed, Options& options, std::string& why)
{
    constexpr std::uint64_t max_salts = 8;
    const std::uint64_t before = options.salt;
    for (std::uint64_t i = 0; i < max_salts; ++i) {
        options.salt = i == 0 ? before : before + i;
        if (std::string now = try_seed(seed, options); !now.empty()) {
            why = std::move(now);
            return true;
        }
    }
    return false;
}

void drop_faults(std::uint64_t seed, Options& options, std::string& why)
{
    const auto began = std::chrono::steady_clock::now();
    for (std::size_t size = (options.only.size() + 1) / 2; size > 0; size = size == 1 ? 0 : (size + 1) / 2) {
        for (std::size_t from = 0; from < options.only.size();) {
            if (std::chrono::steady_clock::now() - began > std::chrono::seconds(90))
                return;
            Options fewer = options;
            const auto begin = std::next(fewer.only.begin(), static_cast<long>(from));
            const auto end = std::next(fewer.only.begin(), static_cast<long>(std::min(from + size, fewer.only.size())));
            fewer.only.erase(begin, end);
            if (still_fails(seed, fewer, why))
                options = fewer;
            else
                from += size;
        }
    }
}

void shrink(std::uint64_t seed, Options options)
{
    std::printf("shrinking seed %llu\n", static_cast<unsigned long long>(seed));
    Time failed_at = 0;
    std::string why = try_seed(seed, options, &failed_at);
    if (why.empty())
        return;
    // Shortens the run to the time of the failure.
    Options shorter = options;
    shorter.hours = static_cast<double>(failed_at) / 3.6e12 + 0.001;
    if (failed_at && shorter.hours < options.hours && still_fails(seed, shorter, why))
        options = shorter;
    Options all = options;
    all.some_only = false;
    const auto whole = plan(seed, all);
    if (!options.some_only)
        for (std::size_t i = 0; i < whole.size(); ++i)
            options.only.insert(i);
    options.some_only = true;
    drop_faults(seed, options, why);
    std::printf("with %zu faults of %zu, in %.3f hours:\n", options.only.size(), whole.size(), options.hours);
    for (const std::size_t index : options.only)
        std::printf("  %4zu  %9.3f s  %-17s node %u, %.3f s\n", index, static_cast<double>(whole[index].when) / second,
                    name_of(whole[index].fault), whole[index].node, static_cast<double>(whole[index].lasts) / second);
    std::printf("  %s\n  make test-sim SEED=%llu SALT=%llu HOURS=%.4f FAULTS=%s\n", why.c_str(),
                static_cast<unsigned long long>(seed), static_cast<unsigned long long>(options.salt), options.hours,
                options.only.empty() ? "none" : text_of(options.only).c_str());
}

// Processes that run all seeds among them, and the failures so far.
class Workers {
public:
    explicit Workers(const Arguments& arguments);
    // Returns when all processes have ended.
    void run();
    // Prints the sums of all processes.
    void report() const;
    std::uint64_t done() const;
    const std::vector<Failure>& failures() const { return failures_; }

private:
    struct Worker {
        Watched* shared;
        // 0: has ended.
        pid_t pid;
    };
    double elapsed() const;
    void start(Worker& worker, std::uint64_t first);
    void stop();
    void watch_time();
    void take_end(Worker& worker, int status);
    void add_edges() const;

    const Arguments& arguments_;
    const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
    std::vector<Worker> workers_;
    std::vector<Failure> failures_;
    std::size_t working_ = 0;
    bool stopped_ = false;
    // Time of the last line of progress, in seconds.
    double told_ = 0;
};

Workers::Workers(const Arguments& arguments) : arguments_(arguments)
{
    for (unsigned int job = 0; job < arguments.jobs; ++job) {
        workers_.push_back({share(), 0});
        start(workers_.back(), arguments.first + job);
    }
    working_ = workers_.size();
}

void Workers::start(Worker& worker, std::uint64_t first)
{
    const std::uint64_t end = arguments_.first + arguments_.seeds;
    worker.pid = start_worker(worker.shared, first, end, arguments_.jobs, arguments_.options);
}

double Workers::elapsed() const
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
}

std::uint64_t Workers::done() const
{
    std::uint64_t sum = 0;
    for (const Worker& worker : workers_)
        sum += worker.shared->seeds_done;
    return sum;
}

void Workers::run()
{
    while (working_ > 0) {
        int status = 0;
        const pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid == 0) {
            usleep(50000);
            watch_time();
            continue;
        }
        const auto it =
            std::find_if(workers_.begin(), workers_.end(), [pid](const Worker& one) { return one.pid == pid; });
        if (it != workers_.end())
            take_end(*it, status);
    }
}

void Workers::stop()
{
    if (std::exchange(stopped_, true))
        return;
    for (const Worker& worker : workers_)
        if (worker.pid)
            kill(worker.pid, SIGTERM);
}

// Reports progress, and ends the run at its time limit.
void Workers::watch_time()
{
    if (elapsed() - told_ > 10) {
        told_ = elapsed();
        std::printf("  %llu seeds, %zu failed, %.0f s\n", static_cast<unsigned long long>(done()), failures_.size(),
                    told_);
        std::fflush(stdout);
    }
    if (arguments_.minutes && elapsed() > 60.0 * arguments_.minutes)
        stop();
}

// A process ended: after its last seed, or because a seed failed. Another one continues after that seed.
void Workers::take_end(Worker& worker, int status)
{
    worker.pid = 0;
    if (status == 0 || stopped_) {
        --working_;
        return;
    }
    const std::uint64_t seed = worker.shared->seed;
    failures_.push_back({seed, reason(*worker.shared, status)});
    std::printf("FAILED seed %llu: %s\n", static_cast<unsigned long long>(seed), failures_.back().why.c_str());
    std::fflush(stdout);
    worker.shared->failure[0] = '\0';
    if (arguments_.stop) {
        --working_;
        stop();
        return;
    }
    start(worker, seed + arguments_.jobs);
}

// Adds the seen transitions of all processes to this one's.
void Workers::add_edges() const
{
    for (const Worker& worker : workers_)
        for (unsigned int i = 0; i < sizeof(watched->edges) / sizeof(std::atomic<std::uint64_t>); ++i)
            (&watched->edges[0][0][0])[i] += (&worker.shared->edges[0][0][0])[i];
}

void Workers::report() const
{
    std::uint64_t nanoseconds = 0, delivered = 0, sent = 0, merged = 0, events = 0;
    for (const Worker& worker : workers_) {
        nanoseconds += worker.shared->nanoseconds;
        delivered += worker.shared->delivered;
        sent += worker.shared->sent;
        merged += worker.shared->merged;
        events += worker.shared->total_steps;
    }
    const double seconds = elapsed();
    std::printf("seeds %llu, simulated hours %.1f of %u nodes, %.0f s, %.2f million events a second\n",
                static_cast<unsigned long long>(done()), static_cast<double>(nanoseconds) / 3.6e12, World::usual_nodes,
                seconds, static_cast<double>(events) / seconds / 1e6);
    std::printf("packets: %llu of %llu sent to a neighbour arrived, %llu of them merged\n",
                static_cast<unsigned long long>(delivered), static_cast<unsigned long long>(sent),
                static_cast<unsigned long long>(merged));
    add_edges();
    print_edges(std::getenv("SIM_EDGES") != nullptr);
}

int run_all(const Arguments& arguments)
{
    watched = share();
    Workers workers(arguments);
    workers.run();
    workers.report();
    const std::vector<Failure>& failures = workers.failures();
    if (arguments.shrink)
        for (std::size_t i = 0; i < failures.size() && i < 3; ++i)
            shrink(failures[i].seed, arguments.options);
    std::printf("%llu passed, %zu failed, 0 skipped\n", static_cast<unsigned long long>(workers.done()),
                failures.size());
    return failures.empty() ? 0 : 1;
}

int replay(const Arguments& arguments)
{
    watched = share();
    noting = true;
    watched->seed = arguments.first;
    run_seed(arguments.first, arguments.options);
    std::printf("seed %llu passes\n1 passed, 0 failed, 0 skipped\n", static_cast<unsigned long long>(arguments.first));
    return 0;
}

int measure(const Arguments& arguments)
{
    watched = share();
    std::fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        run_scale(arguments.scale);
        _exit(0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    if (status != 0)
        std::printf("FAILED: %s\n", reason(*watched, status).c_str());
    std::printf("%d passed, %d failed, 0 skipped\n", status == 0, status != 0);
    return status != 0;
}

} // namespace

} // namespace sim

int main(int count, char** words)
{
    const sim::Arguments arguments = sim::read_arguments(count, words);
    if (arguments.scale.nodes)
        return sim::measure(arguments);
    return arguments.single ? sim::replay(arguments) : sim::run_all(arguments);
}
