// Ranges cover everything once, at grain boundaries, whatever the thread count; a worker's exception arrives.
#include "threads.h"

#include <atomic>
#include <stdexcept>
#include <vector>

#include "check.h"

using namespace sphynx;

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
    return test_result();
}
