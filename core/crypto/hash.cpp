#include "crypto/hash.h"

#include "crypto/kernels.h"

namespace sphynx::crypto {

void hash_blocks(const AesKey& key, const Block* in, const Block* tweaks, Block* out, std::size_t count) {
    symmetric_kernels().hash(key, in, tweaks, out, count);
}

}  // namespace sphynx::crypto
