#include "crypto/aes.h"

#include <cstring>

#include "cpu.h"
#include "crypto/kernels.h"

namespace sphynx::crypto {

const SymmetricKernels& symmetric_kernels() {
    [[maybe_unused]] const CpuFeatures& cpu = usable_features();
#if defined(__aarch64__)
    if (cpu.armv8_aes) return armv8_kernels();
#elif defined(__x86_64__)
    if (cpu.vaes && cpu.avx512) return vaes512_kernels();
    if (cpu.vaes) return vaes_kernels();
    if (cpu.aesni) return aesni_kernels();
#endif
    return portable_kernels();
}

AesKey::AesKey(Block key) {
    const auto substitute = symmetric_kernels().substitute_word;
    std::uint32_t words[44];
    std::memcpy(words, &key, sizeof key);
    std::uint32_t round_constant = 1;
    for (int i = 4; i < 44; ++i) {
        std::uint32_t word = words[i - 1];
        if (i % 4 == 0) {
            word = substitute(std::rotr(word, 8)) ^ round_constant;
            round_constant = (round_constant << 1) ^ ((round_constant >> 7) * 0x11b);
        }
        words[i] = words[i - 4] ^ word;
    }
    std::memcpy(round_keys_, words, sizeof words);
    zeroise(words, sizeof words);
}

void aes_encrypt(const AesKey& key, const Block* in, Block* out, std::size_t count) {
    symmetric_kernels().encrypt(key, in, out, count);
}

void aes_counter_stream(const AesKey& key, Block counter, Block* out, std::size_t count) {
    symmetric_kernels().counter_stream(key, counter, out, count);
}

const char* aes_path_name() {
    return symmetric_kernels().name;
}

}  // namespace sphynx::crypto
