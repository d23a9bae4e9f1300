// FIPS 197 appendix B and C.1, SP 800-38A F.1.1 and F.5.1, and agreement of every path at odd counts.
#include "crypto/aes.h"

#include <cstring>
#include <string>
#include <vector>

#include "check.h"
#include "cpu.h"
#include "crypto/kernels.h"

using namespace sphynx;
using namespace sphynx::crypto;

namespace {

Block from_hex(const std::string& hex) {
    unsigned char bytes[16];
    for (int i = 0; i < 16; ++i)
        bytes[i] = static_cast<unsigned char>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
    Block block;
    std::memcpy(&block, bytes, sizeof block);
    return block;
}

Block encrypt_one(const std::string& key, const std::string& plain) {
    const AesKey aes(from_hex(key));
    Block out;
    const Block in = from_hex(plain);
    aes_encrypt(aes, &in, &out, 1);
    return out;
}

void check_vectors() {
    CHECK(encrypt_one("2b7e151628aed2a6abf7158809cf4f3c", "3243f6a8885a308d313198a2e0370734") ==
          from_hex("3925841d02dc09fbdc118597196a0b32"));
    CHECK(encrypt_one("000102030405060708090a0b0c0d0e0f", "00112233445566778899aabbccddeeff") ==
          from_hex("69c4e0d86a7b0430d8cdb78070b4c55a"));
    CHECK(encrypt_one("2b7e151628aed2a6abf7158809cf4f3c", "6bc1bee22e409f96e93d7e117393172a") ==
          from_hex("3ad77bb40d7a3660a89ecaf32466ef97"));

    const AesKey key(from_hex("2b7e151628aed2a6abf7158809cf4f3c"));
    Block stream[2];
    aes_counter_stream(key, from_hex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"), stream, 2);
    CHECK((stream[0] ^ from_hex("6bc1bee22e409f96e93d7e117393172a")) ==
          from_hex("874d6191b620e3261bef6864990db6ce"));
    CHECK((stream[1] ^ from_hex("ae2d8a571e03ac9c9eb76fac45af8e51")) ==
          from_hex("9806f66b7970fdff8617187bb9fffdff"));
}

// A counter that wraps its low word, at counts around the pipeline's step.
void check_agreement_with_portable() {
    const AesKey key(from_hex("00112233445566778899aabbccddeeff"));
    const Block counter = from_hex("0000000000000041fffffffffffffff7");
    for (std::size_t count : {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 100}) {
        std::vector<Block> fast(count), slow(count), fast_blocks(count), slow_blocks(count);
        aes_counter_stream(key, counter, fast.data(), count);
        aes_encrypt(key, fast.data(), fast_blocks.data(), count);
        {
            const LimitFeatures portable({});
            aes_counter_stream(AesKey(from_hex("00112233445566778899aabbccddeeff")), counter, slow.data(),
                               count);
            aes_encrypt(key, slow.data(), slow_blocks.data(), count);
        }
        CHECK(fast == slow);
        CHECK(fast_blocks == slow_blocks);
        aes_encrypt(key, fast.data(), fast.data(), count);
        CHECK(fast == fast_blocks);
    }
}

// What OT extension sums of sixteen keys' streams, against the streams themselves.
void check_sums() {
    constexpr std::size_t keys = 16;
    std::vector<AesKey> leaves;
    for (std::uint64_t number = 0; number < keys; ++number) leaves.emplace_back(Block{number, 3});
    const Block counter = from_hex("0000000000000041fffffffffffffff7");
    for (const std::size_t count : {1, 2, 3, 7, 8, 9, 20}) {
        std::vector<Block> rows(4 * count), total(count), expected_rows(4 * count), expected(count),
            stream(count);
        symmetric_kernels().sum_sixteen_streams(leaves.data(), counter, rows.data(), total.data(), count);
        for (std::size_t number = 0; number < keys; ++number) {
            aes_counter_stream(leaves[number], counter, stream.data(), count);
            for (std::size_t j = 0; j < count; ++j) {
                expected[j] ^= stream[j];
                for (std::size_t bit = 0; bit < 4; ++bit)
                    if (number >> bit & 1) expected_rows[bit * count + j] ^= stream[j];
            }
        }
        CHECK(rows == expected_rows);
        CHECK(total == expected);
    }
}

}  // namespace

int main() {
    for (const CpuFeatures& features : features_to_test()) {
        const LimitFeatures limit(features);
        std::printf("path: %s\n", aes_path_name());
        check_vectors();
        check_agreement_with_portable();
        check_sums();
    }
    const LimitFeatures portable({});
    CHECK(std::string(aes_path_name()) == "portable");
    return test_result();
}
