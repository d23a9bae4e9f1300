// Splits independent work over the cores: one pool of threads for the whole process.
//
// A call cuts its work into ranges and runs them in the calling thread. Idle threads of the pool take ranges
// as well, as long as no more than available_cores() threads are at work, callers included: however many
// threads call at the same time, they get the cores and no more threads than that. The call returns when its
// last range is done, so no thread outlives the buffers it was given. Threads are started when they are first
// of use and then kept; a forked process starts its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <vector>

namespace sphynx {

// The cores that this process may use: its affinity mask, not the machine's total, and at most limit_cores().
unsigned available_cores();

// Where several processes share the machine; 0 takes the limit away.
void limit_cores(unsigned most);

// As many of `threads` (0: available_cores()) as get at least `least` of the work each.
inline unsigned threads_worth(unsigned threads, std::size_t work, std::size_t least) {
    const std::size_t worth = std::max<std::size_t>(work / least, 1);
    return static_cast<unsigned>(std::min<std::size_t>(worth, threads ? threads : available_cores()));
}

// Calls run(context, i) once for every i below count, in any order and by any thread of the pool. It must not
// throw.
void run_in_pool(std::size_t count, void (*run)(const void* context, std::size_t i), const void* context);

// Calls work(begin, end) for disjoint ranges that cover [0, count); every range but the last is a multiple of
// `grain` long. As many ranges as threads (0: available_cores()), whoever runs them. The first exception of
// any range is rethrown here.
template <class Work>
void parallel_ranges(std::size_t count, std::size_t grain, unsigned threads, const Work& work) {
    if (count == 0) return;
    const std::size_t grains = (count + grain - 1) / grain;
    constexpr std::size_t most_ranges = 256;
    const std::size_t ranges =
        std::min({std::size_t{threads ? threads : available_cores()}, grains, most_ranges});
    if (ranges <= 1) {
        work(std::size_t{0}, count);
        return;
    }
    std::vector<std::exception_ptr> failures(ranges);
    const auto run = [&](std::size_t range) {
        const std::size_t begin = grains * range / ranges * grain;
        const std::size_t end = std::min(count, grains * (range + 1) / ranges * grain);
        try {
            work(begin, end);
        } catch (...) {
            failures[range] = std::current_exception();
        }
    };
    run_in_pool(
        ranges,
        [](const void* context, std::size_t range) { (*static_cast<const decltype(run)*>(context))(range); },
        &run);
    for (const std::exception_ptr& failure : failures) {
        if (failure) std::rethrow_exception(failure);
    }
}

}  // namespace sphynx
