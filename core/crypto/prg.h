// Pseudorandom bytes: AES-128 in counter mode under a seed from the operating system (getentropy).
// Every secret of the core is drawn here. A caller-chosen seed exists for two purposes only, each with its
// own name: expanding a seed that was itself drawn here or sent by a peer (expand_seed), and tests.
#pragma once

#include <cstddef>
#include <cstdint>

#include "crypto/aes.h"

namespace sphynx::crypto {

// Fills memory from the operating system's generator; throws std::system_error if it cannot.
void os_random(void* out, std::size_t bytes);

class Prg {
  public:
    Prg();  // seeded by the operating system, again in a process that was forked off: no two share a stream
    Prg(Prg&&) = default;
    Prg(const Prg&) = delete;
    Prg& operator=(const Prg&) = delete;

    static Prg fixed_seed_for_tests(Block seed);

    // Whole blocks are drawn; bytes of a block that are not needed are thrown away. Threads may share a
    // generator: no two draws ever overlap.
    void fill(void* out, std::size_t bytes);
    void fill_blocks(Block* out, std::size_t count);
    Block block();

  private:
    explicit Prg(Block seed) : key_(seed) {}
    void seed_from_os();
    void seed_again_after_fork();

    AesKey key_;
    std::uint64_t stream_ = 0;  // drawn with the key: no two generators' keys encrypt the same
    std::uint64_t drawn_blocks_ = 0;
    std::uint64_t process_ = 0;  // that seeded it; 0 for a fixed seed
};

constexpr std::size_t kSeedGrain = 1 << 14;  // expanded blocks that take longer than starting a thread

// Blocks first_block .. of stream number `stream` under `seed`: a long random array kept or sent as 16 bytes.
// Different streams of one seed are independent; the same arguments give the same blocks on every machine.
// threads = 0 takes all cores.
void expand_seed(const AesKey& seed, std::uint64_t stream, std::uint64_t first_block, Block* out,
                 std::size_t count, unsigned threads = 1);

}  // namespace sphynx::crypto
