// What a party of a GMW gadget held is zero when its memory is given back.
#include <algorithm>
#include <cstdlib>
#include <new>
#include <optional>

#include "check.h"
#include "dealer.h"

using namespace sphynx;
using namespace sphynx::bits;
using namespace sphynx::crypto;
using namespace sphynx::gmw;

namespace {

// The party's memory is the one array of words that is made while it is watched for.
bool is_watching = false;
std::size_t watched_words = 0;
std::uint64_t* watched = nullptr;
bool was_wiped = false;

bool is_zero() {
    return std::all_of(watched, watched + watched_words, [](std::uint64_t word) { return word == 0; });
}

template <class Party>
void check_wipe(const GadgetShape& shape, const Digits& digits, const auto& material, const Planes& x) {
    std::optional<Party> party;
    watched = nullptr, was_wiped = false;
    is_watching = true;
    party.emplace(shape, digits, material, x);
    is_watching = false;
    CHECK(watched != nullptr && watched_words >= shape.count && !is_zero());
    party.reset();
    CHECK(was_wiped);
}

}  // namespace

void* operator new[](std::size_t bytes) {
    void* made = std::malloc(bytes);
    if (made == nullptr) throw std::bad_alloc();
    if (is_watching) watched = static_cast<std::uint64_t*>(made), watched_words = bytes / sizeof *watched;
    return made;
}

void operator delete[](void* memory) noexcept {
    if (memory != nullptr && memory == watched) was_wiped = is_zero();
    std::free(memory);
}

void operator delete[](void* memory, std::size_t) noexcept {
    operator delete[](memory);
}

int main() {
    Prg prg;
    for (const Gadget gadget : {Gadget::relu, Gadget::truncation}) {
        const GadgetShape shape{gadget, 17, 20, 5, 130};
        const Digits digits = shape.digits();
        const Planes x = random_words(prg, shape.count);
        const Dealt dealt(shape, x, prg);
        check_wipe<ServerParty>(shape, digits, dealt.of_server(), x);
        check_wipe<ClientParty>(shape, digits, dealt.of_client(), x);
    }
    return test_result();
}
