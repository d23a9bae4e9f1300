// RLWE's wire: packed residues, public keys, uploads and replies. Refused, or taken; residues that were taken pack
// to the very bytes they came from, so that no two messages mean the same.
//
//   byte 0, low two bits   what follows: residues, a public key, an upload, a reply
//   bit 2                  set: cut or filled with zeros to the size that is due, to get past the check of lengths
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "rlwe/bitpack.h"
#include "rlwe/client.h"
#include "rlwe/server.h"

using namespace sphynx;
using namespace sphynx::crypto;
using namespace sphynx::rlwe;

namespace {

using Bytes = std::vector<std::uint8_t>;

const std::shared_ptr<const Params>& params() {
    static const std::shared_ptr<const Params> made = Params::make(4096, 32, {28, 28, 23}, 2);
    return made;
}

const SecretKey& secret() {
    static Prg prg = Prg::fixed_seed_for_tests({1, 2});
    static const SecretKey key(params(), prg);
    return key;
}

void check_residues(const Bytes& wire) {
    for (int prime = 0; prime < params()->primes(); ++prime) {
        const Modulus& modulus = params()->modulus(prime);
        const std::size_t count = 8 * wire.size() / static_cast<std::size_t>(modulus.bits());
        if (packed_bytes(count, modulus.bits()) != wire.size()) continue;
        std::vector<std::int32_t> centred(count);
        try {
            unpack(wire.data(), count, modulus, centred.data());
        } catch (const std::invalid_argument&) {
            continue;
        }
        Bytes packed(wire.size());
        pack(centred.data(), count, modulus, packed.data());
        if (packed != wire) std::abort();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const unsigned kind = data[0] & 3;
    Bytes wire(data + 1, data + size);
    const UsedCoefficients used{{0, 1, 4095}, {3, 1}};
    const std::size_t due[4] = {wire.size(), params()->public_key_bytes(), 2 * params()->upload_bytes(),
                                used.reply_bytes(*params())};
    if (data[0] & 4) wire.resize(due[kind]);
    try {
        if (kind == 0) check_residues(wire);
        if (kind == 1) PublicKey(params(), wire);
        if (kind == 2) Ciphertexts(params(), wire, 2, 1);
        if (kind == 3) {
            std::vector<std::uint64_t> out(used.total());
            secret().decrypt(wire, used, 1, 1, out.data());
            for (const std::uint64_t value : out)
                if (value & ~params()->ring_mask()) std::abort();
        }
    } catch (const std::invalid_argument&) {
    }
    return 0;
}
