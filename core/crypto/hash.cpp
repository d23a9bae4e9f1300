#include "crypto/hash.h"

#include "crypto/kernels.h"

namespace sphynx {

void hash_blocks(const AesKey& key, const Block* in, std::uint64_t first_tweak, Block* out,
                 std::size_t count) {
    symmetric_kernels().hash(key, in, first_tweak, out, count);
}

}  // namespace sphynx
