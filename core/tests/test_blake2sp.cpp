// BLAKE2sp on every path against digests that Python's hashlib gives, leaves and root as nodes of its tree mode:
//   node = partial(hashlib.blake2s, digest_size=32, fanout=8, depth=2, leaf_size=0, inner_size=32)
//   leaf = lambda i: b"".join(data[at : at + 64] for at in range(64 * i, len(data), 512))
//   digests = b"".join(node(leaf(i), node_offset=i, node_depth=0, last_node=i == 7).digest() for i in range(8))
//   node(digests, node_offset=0, node_depth=1, last_node=True).hexdigest()
// libb2's blake2sp gives the same.
#include "crypto/blake2sp.h"

#include <cstdio>
#include <string>
#include <vector>

#include "check.h"
#include "cpu.h"

using namespace sphynx;
using namespace sphynx::crypto;

namespace {

// By number of bytes: around where a leaf has its first, another or its last block.
const struct {
    std::size_t count;
    const char* digest;
} known[] = {
    {0, "dd0e891776933f43c7d032b08a917e25741f8aa9a12c12e1cac8801500f2ca4f"},
    {1, "a6b9eecc25227ad788c99d3f236debc8da408849e9a5178978727a81457f7239"},
    {64, "9ba0c37f1ab9fdd4b656b42702049eec67f76c1ef76c3722b7b1e2a019674230"},
    {448, "56a645423d9a120852b5194f0eeca59299201372e9446056b8d3344f577b8973"},
    {449, "8dfe00d730267dbc39b909dfc4be1ecf5b59afcbaa2eeea95c0cd343b3366ac9"},
    {512, "b8b77dc57c1f8da6642f8b45690c4c19fc7a5bf068c2d5f977deeb2d753fd8ca"},
    {960, "95031dc01f480c2c05d68248d804fa31eb8ee30963a8dbe08889ab22d25144fe"},
    {961, "ed8d30b628dc066841c7601fc22f28f7271e0421b97c99977243fef5587d215c"},
    {1024, "ec116948e344fde3dcafb128c32a13346d6a5ca04faa569f53906804f6760d02"},
    {1472, "8b9ffecd7c2529e43099e64ba2845c7c008b473b80eaba05cd3d1149bff321cd"},
    {1473, "89da7d4c19d75845b5a1a4a9b8383367fb48cd018c4d809e018fd612de2a1c2e"},
    {4999, "40015a03d0bd6ee64440135282c4ebc802208f50ccdef370d089523e31f6b3b4"},
};

void check_digests() {
    std::vector<std::uint8_t> bytes(5000);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(7 * i + (i >> 8));
    for (const auto& one : known) {
        std::uint8_t digest[kBlake2spBytes];
        // From memory of its own, so that a sanitizer sees what is read beyond it.
        const std::vector<std::uint8_t> message(bytes.begin(),
                                                bytes.begin() + static_cast<std::ptrdiff_t>(one.count));
        blake2sp(message.data(), message.size(), digest);
        std::string written;
        for (const std::uint8_t byte : digest) {
            char two[3];
            std::snprintf(two, sizeof two, "%02x", byte);
            written += two;
        }
        CHECK(written == one.digest);
    }
}

}  // namespace

int main() {
    for (const CpuFeatures& features : features_to_test()) {
        const LimitFeatures limit(features);
        std::printf("path: %s\n", blake2sp_path_name());
        check_digests();
    }
    return test_result();
}
