// BLAKE2b against the example of RFC 7693; in pieces of any length as in one.
#include "crypto/blake2b.h"

#include <cstring>
#include <vector>

#include "check.h"

using namespace sphynx;
using namespace sphynx::crypto;

int main() {
    const std::uint8_t of_abc[64] = {
        0xba, 0x80, 0xa5, 0x3f, 0x98, 0x1c, 0x4d, 0x0d, 0x6a, 0x27, 0x97, 0xb6, 0x9f, 0x12, 0xf6, 0xe9,
        0x4c, 0x21, 0x2f, 0x14, 0x68, 0x5a, 0xc4, 0xb7, 0x4b, 0x12, 0xbb, 0x6f, 0xdb, 0xff, 0xa2, 0xd1,
        0x7d, 0x87, 0xc5, 0x39, 0x2a, 0xab, 0x79, 0x2d, 0xc2, 0x52, 0xd5, 0xde, 0x45, 0x33, 0xcc, 0x95,
        0x18, 0xd3, 0x8a, 0xa8, 0xdb, 0xf1, 0x92, 0x5a, 0xb9, 0x23, 0x86, 0xed, 0xd4, 0x00, 0x99, 0x23};
    std::uint8_t digest[64];
    Blake2b abc(64);
    abc.update("abc", 3);
    abc.finish(digest);
    CHECK(std::memcmp(digest, of_abc, 64) == 0);

    std::vector<std::uint8_t> bytes(1000);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(7 * i);
    for (const std::size_t size : {0, 1, 127, 128, 129, 255, 256, 257, 1000}) {
        std::uint8_t whole[32], pieces[32];
        Blake2b one(32);
        one.update(bytes.data(), size);
        one.finish(whole);
        for (const std::size_t piece : {1, 3, 64, 128, 200}) {
            Blake2b many(32);
            for (std::size_t at = 0; at < size; at += piece) {
                many.update(bytes.data() + at, std::min(piece, size - at));
            }
            many.finish(pieces);
            CHECK(std::memcmp(whole, pieces, 32) == 0);
        }
    }
    Blake2b plain(32), other(32, "b");
    std::uint8_t first[32], second[32];
    plain.finish(first), other.finish(second);
    CHECK(std::memcmp(first, second, 32) != 0);
    CHECK_THROWS(Blake2b(0));
    CHECK_THROWS(Blake2b(65));
    return test_result();
}
