// Ranges cover everything once, at grain boundaries, whatever the thread count; a range's exception arrives. The
// pool is one for all callers, and a forked process has its own.
#include "threads.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "check.h"

using namespace sphynx;

namespace {

// The sum of 0 ... count - 1, by ranges within ranges.
std::size_t nested_sum(std::size_t count) {
    std::atomic<std::size_t> sum = 0;
    parallel_ranges(count, 16, 4, [&](std::size_t begin, std::size_t end) {
        parallel_ranges(end - begin, 4, 3, [&](std::size_t first, std::size_t last) {
            for (std::size_t i = first; i < last; ++i) sum += begin + i;
        });
    });
    return sum;
}

void check_callers_at_once() {
    std::vector<std::jthread> callers;
    std::atomic<int> right = 0;
    for (int caller = 0; caller < 8; ++caller) {
        callers.emplace_back([&] {
            for (int times = 0; times < 200; ++times) right += nested_sum(500) == 500 * 499 / 2;
        });
    }
    callers.clear();
    CHECK(right == 8 * 200);
}

// As many threads at work at the same time as there are cores, however many ranges: callers are few here.
void check_limit() {
    limit_cores(2);
    CHECK(available_cores() <= 2);
    std::atomic<int> at_work = 0, most = 0;
    parallel_ranges(64, 1, 64, [&](std::size_t, std::size_t) {
        const int now = ++at_work;
        for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
        }
        std::this_thread::yield();
        --at_work;
    });
    CHECK(most >= 1 && most <= 2);
    limit_cores(1);
    CHECK(available_cores() == 1 && nested_sum(500) == 500 * 499 / 2);
    limit_cores(0);
}

void check_fork() {
    CHECK(nested_sum(500) == 500 * 499 / 2);  // the pool's threads run, and are not in the child
    const pid_t child = fork();
    if (child == 0) _exit(nested_sum(500) == 500 * 499 / 2 ? 0 : 1);
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

}  // namespace

int main() {
    CHECK(available_cores() >= 1);
    CHECK(threads_worth(8, 0, 10) == 1 && threads_worth(8, 19, 10) == 1 && threads_worth(8, 20, 10) == 2);
    CHECK(threads_worth(2, 1000, 10) == 2 && threads_worth(0, 10000000, 1) == available_cores());
    for (const unsigned threads : {0u, 1u, 2u, 7u, 100000u}) {
        for (const std::size_t count : {0, 1, 63, 64, 65, 1000}) {
            std::vector<std::atomic<int>> seen(count);
            std::atomic<bool> aligned = true;
            parallel_ranges(count, 64, threads, [&](std::size_t begin, std::size_t end) {
                if (begin % 64 || (end % 64 && end != count)) aligned = false;
                for (std::size_t i = begin; i < end; ++i) ++seen[i];
            });
            CHECK(aligned);
            for (const auto& times : seen) CHECK(times == 1);
        }
        CHECK_THROWS((parallel_ranges(1000, 10, threads,
                                      [](std::size_t, std::size_t end) {
                                          if (end == 1000) throw std::runtime_error("the last worker");
                                      }),
                      0));
    }
    check_callers_at_once();
    check_limit();
    check_fork();
    return test_result();
}
