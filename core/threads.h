// Splits independent work over threads. Workers live for one call: the batches here run for milliseconds, and
// no thread outlives the buffers it was given.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace sphynx {

// The cores that this process may use (its affinity mask, not the machine's total).
unsigned available_cores();

// As many of `threads` (0: available_cores()) as get at least `least` of the work each.
inline unsigned threads_worth(unsigned threads, std::size_t work, std::size_t least) {
    const std::size_t worth = std::max<std::size_t>(work / least, 1);
    return static_cast<unsigned>(std::min<std::size_t>(worth, threads ? threads : available_cores()));
}

// Calls work(begin, end) for disjoint ranges that cover [0, count); every range but the last is a multiple of
// `grain` long. threads = 0 takes available_cores(). The first exception of any worker is rethrown here.
template <class Work>
void parallel_ranges(std::size_t count, std::size_t grain, unsigned threads, const Work& work) {
    if (count == 0) return;
    const std::size_t grains = (count + grain - 1) / grain;
    constexpr std::size_t most_workers = 256;
    const std::size_t workers =
        std::min({std::size_t{threads ? threads : available_cores()}, grains, most_workers});
    if (workers <= 1) {
        work(std::size_t{0}, count);
        return;
    }
    std::vector<std::exception_ptr> failures(workers);
    const auto run = [&](std::size_t worker) {
        const std::size_t begin = grains * worker / workers * grain;
        const std::size_t end = std::min(count, grains * (worker + 1) / workers * grain);
        try {
            work(begin, end);
        } catch (...) {
            failures[worker] = std::current_exception();
        }
    };
    {
        std::vector<std::jthread> pool;
        pool.reserve(workers - 1);
        for (std::size_t worker = 1; worker < workers; ++worker) pool.emplace_back(run, worker);
        run(0);
    }
    for (const std::exception_ptr& failure : failures) {
        if (failure) std::rethrow_exception(failure);
    }
}

}  // namespace sphynx
