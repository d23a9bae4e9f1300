#include "crypto/prg.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "check.h"

using namespace sphynx;
using namespace sphynx::crypto;

// Whether this process and a child of it draw the same next from one generator.
bool child_draws_the_same(Prg& prg) {
    int ends[2];
    CHECK(pipe(ends) == 0);
    const pid_t child = fork();
    const Block drawn = prg.block();
    if (child == 0) _exit(write(ends[1], &drawn, sizeof drawn) == sizeof drawn ? 0 : 1);
    Block other;
    CHECK(read(ends[0], &other, sizeof other) == sizeof other);
    CHECK(waitpid(child, nullptr, 0) == child);
    return other == drawn;
}

#if defined(__linux__)
// The work's answer, in a child that is the first process of a pid namespace of its own and so has the id 1; false
// where the system does not allow that.
template <class Work>
bool in_pid_namespace(const Work& work) {
    const pid_t helper = fork();
    if (helper == 0) {
        if (unshare(CLONE_NEWPID) != 0) _exit(0);
        const pid_t first = fork();
        if (first == 0) _exit(work());
        int status = 0;
        _exit(waitpid(first, &status, 0) == first ? WEXITSTATUS(status) : 0);
    }
    int status = 0;
    CHECK(waitpid(helper, &status, 0) == helper);
    return WEXITSTATUS(status) != 0;
}
#endif

int main() {
    // Two OS-seeded generators never agree; a fixed seed always does, however the draws are cut.
    Prg first, second;
    CHECK(!(first.block() == second.block()));

    // Nor do a process and its child, which would otherwise go on from the same state.
    CHECK(!child_draws_the_same(first));
#if defined(__linux__)
    CHECK(!in_pid_namespace([] {
        Prg prg;
        return unshare(CLONE_NEWPID) == 0 && child_draws_the_same(prg);  // both have the id 1
    }));
#endif

    Prg whole = Prg::fixed_seed_for_tests({7, 9}), pieces = Prg::fixed_seed_for_tests({7, 9});
    std::vector<Block> a(300), b(300);
    whole.fill_blocks(a.data(), 300);
    pieces.fill_blocks(b.data(), 1);
    pieces.fill_blocks(b.data() + 1, 130);
    pieces.fill_blocks(b.data() + 131, 169);
    CHECK(a == b);

    // It is AES in counter mode from zero.
    Block expected;
    const AesKey key({7, 9});
    aes_counter_stream(key, {0, 0}, &expected, 1);
    CHECK(a[0] == expected);

    Prg bytes = Prg::fixed_seed_for_tests({7, 9});
    std::vector<unsigned char> odd(4801);
    bytes.fill(odd.data(), odd.size());
    CHECK(std::memcmp(odd.data(), a.data(), 4800) == 0);

    Prg unaligned = Prg::fixed_seed_for_tests({7, 9});
    unaligned.fill(odd.data() + 1, odd.size() - 1);
    CHECK(std::memcmp(odd.data() + 1, a.data(), 4800) == 0);

    // Threads change nothing, not even where the counter wraps.
    for (const std::uint64_t first : {std::uint64_t{5}, ~std::uint64_t{0} - 20000}) {
        std::vector<Block> alone(50001), shared(50001);
        expand_seed(key, 3, first, alone.data(), alone.size());
        expand_seed(key, 3, first, shared.data(), shared.size(), 3);
        CHECK(alone == shared);
    }

    // Streams of one seed differ, and a part of a stream is that part.
    std::vector<Block> stream(10), part(4);
    expand_seed(key, 3, 0, stream.data(), 10);
    expand_seed(key, 3, 5, part.data(), 4);
    CHECK(std::memcmp(stream.data() + 5, part.data(), sizeof(Block) * 4) == 0);
    expand_seed(key, 4, 5, part.data(), 4);
    CHECK(std::memcmp(stream.data() + 5, part.data(), sizeof(Block) * 4) != 0);
    return test_result();
}
