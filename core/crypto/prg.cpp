#include "crypto/prg.h"

#include <pthread.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>

#include "threads.h"

namespace sphynx::crypto {

// Of Linux and macOS alike: all that was asked for or nothing, and it waits until the generator is seeded.
void os_random(void* out, std::size_t bytes) {
    constexpr std::size_t most_at_once = 256;  // bytes, of getentropy
    auto* cursor = static_cast<unsigned char*>(out);
    while (bytes > 0) {
        const std::size_t some = std::min(bytes, most_at_once);
        if (getentropy(cursor, some) != 0)
            throw std::system_error(errno, std::generic_category(), "getentropy");
        cursor += some;
        bytes -= some;
    }
}

namespace {

std::atomic<std::uint32_t> forks{0};  // between this process and the first one

// Of this process, never 0. Its id alone does not do: a child in a new pid namespace can have its parent's, and an
// id is given again. Forks that pass by the C library are still told apart by it.
std::uint64_t this_process() {
    static const int counted = pthread_atfork(nullptr, nullptr, [] { ++forks; });
    (void)counted;
    return std::uint64_t{forks.load(std::memory_order_relaxed)} << 32 | static_cast<std::uint32_t>(getpid());
}

}  // namespace

Prg::Prg() {
    seed_from_os();
}

void Prg::seed_from_os() {
    Block seed;
    os_random(&seed, sizeof seed);
    key_ = AesKey(seed);
    zeroise(&seed, sizeof seed);
    os_random(&stream_, sizeof stream_);
    std::atomic_ref(process_).store(this_process(), std::memory_order_release);
}

// Threads of the new process may come here together: one seeds, the others wait for it.
void Prg::seed_again_after_fork() {
    static std::atomic<std::uint64_t> holder{
        0};  // of another process: copied by a fork while that one seeded
    const std::uint64_t self = this_process();
    for (std::uint64_t seen = holder.load(); seen == self || !holder.compare_exchange_weak(seen, self);) {
        std::this_thread::yield();
        seen = holder.load();
    }
    if (std::atomic_ref(process_).load() != self) seed_from_os();
    holder.store(0);
}

Prg Prg::fixed_seed_for_tests(Block seed) {
    return Prg(seed);
}

void Prg::fill_blocks(Block* out, std::size_t count) {
    const std::uint64_t seeded_by = std::atomic_ref(process_).load(std::memory_order_acquire);
    if (seeded_by != 0 && seeded_by != this_process()) seed_again_after_fork();
    expand_seed(key_, stream_, std::atomic_ref(drawn_blocks_).fetch_add(count), out, count);
}

void Prg::fill(void* out, std::size_t bytes) {
    auto* cursor = static_cast<unsigned char*>(out);
    if (reinterpret_cast<std::uintptr_t>(out) % alignof(Block) == 0) {
        const std::size_t whole = bytes / sizeof(Block);
        fill_blocks(static_cast<Block*>(out), whole);
        cursor += whole * sizeof(Block);
        bytes -= whole * sizeof(Block);
    }
    Block chunk[64];
    while (bytes > 0) {
        const std::size_t take = bytes < sizeof chunk ? bytes : sizeof chunk;
        fill_blocks(chunk, (take + sizeof(Block) - 1) / sizeof(Block));
        std::memcpy(cursor, chunk, take);
        cursor += take;
        bytes -= take;
    }
    zeroise(chunk, sizeof chunk);
}

Block Prg::block() {
    Block drawn;
    fill_blocks(&drawn, 1);
    return drawn;
}

void expand_seed(const AesKey& seed, std::uint64_t stream, std::uint64_t first_block, Block* out,
                 std::size_t count, unsigned threads) {
    parallel_ranges(count, kSeedGrain, threads, [&](std::size_t begin, std::size_t end) {
        const std::uint64_t low = first_block + begin, high = stream + (low < begin);
        aes_counter_stream(seed, {__builtin_bswap64(high), __builtin_bswap64(low)}, out + begin, end - begin);
    });
}

}  // namespace sphynx::crypto
