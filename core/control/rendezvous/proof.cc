#include "core/control/rendezvous/proof.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "core/base/check.h"

namespace lockstep::control::rendezvous {
namespace {

std::string Prove(std::string_view secret, std::string message, const Nonces& nonces,
                  std::string_view request) {
  // All but the last part have a fixed length: no two messages read alike.
  message.append(nonces.follower).append(nonces.coordinator).append(request);
  unsigned char proof[EVP_MAX_MD_SIZE];
  unsigned int bytes = 0;
  LOCKSTEP_CHECK(HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
                      reinterpret_cast<const unsigned char*>(message.data()), message.size(), proof,
                      &bytes) != nullptr,
                 "OpenSSL has no HMAC with SHA-256");
  return {reinterpret_cast<const char*>(proof), bytes};
}

}  // namespace

std::string RandomBytes() {
  std::string bytes(kNonceBytes, '\0');
  LOCKSTEP_CHECK(getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()),
                 std::strerror(errno));
  return bytes;
}

std::string ProofOfCoordinator(std::string_view secret, const Nonces& nonces) {
  return Prove(secret, "C", nonces, "");
}

std::string ProofOfFollower(std::string_view secret, const Nonces& nonces,
                            std::string_view request) {
  return Prove(secret, "F", nonces, request);
}

bool IsSameProof(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace lockstep::control::rendezvous
