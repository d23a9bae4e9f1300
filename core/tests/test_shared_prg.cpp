// One generator, many threads: no block is drawn twice, in the process that seeded it and in one that was forked off,
// whose threads come to it all at once.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "check.h"
#include "crypto/prg.h"

using namespace sphynx;
using namespace sphynx::crypto;

namespace {

constexpr std::size_t kThreads = 4, kDraws = 200;

// Blocks that every thread drew, in pieces of different sizes.
std::vector<std::pair<std::uint64_t, std::uint64_t>> drawn_by_all(Prg& prg) {
    std::vector<std::vector<Block>> drawn(kThreads);
    std::atomic<std::size_t> waiting = kThreads;
    {
        std::vector<std::jthread> pool;
        for (std::size_t number = 0; number < kThreads; ++number) {
            pool.emplace_back([&, number] {
                for (--waiting; waiting > 0;) std::this_thread::yield();  // all at once
                for (std::size_t draw = 0; draw < kDraws; ++draw) {
                    Block blocks[3];
                    const std::size_t count = 1 + (draw + number) % 3;
                    prg.fill_blocks(blocks, count);
                    drawn[number].insert(drawn[number].end(), blocks, blocks + count);
                }
            });
        }
    }
    std::vector<std::pair<std::uint64_t, std::uint64_t>> all;
    for (const std::vector<Block>& own : drawn) {
        for (const Block& block : own) all.emplace_back(block.lo, block.hi);
    }
    std::sort(all.begin(), all.end());
    return all;
}

bool are_distinct(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& sorted) {
    return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
}

}  // namespace

int main() {
    Prg prg;
    prg.block();
    const pid_t child = fork();
    if (child == 0) _exit(are_distinct(drawn_by_all(prg)) ? 0 : 1);
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(are_distinct(drawn_by_all(prg)));
    return test_result();
}
