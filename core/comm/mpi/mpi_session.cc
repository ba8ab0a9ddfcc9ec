// Initializes MPI once a process, and finalizes it only if nothing went wrong. Narrow floats travel
// as integers and are reduced by functions of ours, one for each type and reduction, because MPI
// passes them no argument.
#include "core/comm/mpi/mpi_session.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "core/comm/narrow_reduction.h"
#include "fmt/format.h"

namespace lockstep::comm::mpi {
namespace {

// MPI's user functions have no argument for us, so there is one function for each operation.
template <DataType kType, Reduction kReduction>
void ReduceNarrow(void* in, void* inout, int* count, MPI_Datatype*) {
  static const NarrowReduction reduce = NarrowReductionFor(kType, kReduction);
  reduce(inout, inout, in, static_cast<std::size_t>(*count));
}

// By Reduction.
template <DataType kType>
constexpr std::array<MPI_User_function*, 4> kReduce = {
    &ReduceNarrow<kType, Reduction::kSum>, &ReduceNarrow<kType, Reduction::kProd>,
    &ReduceNarrow<kType, Reduction::kMin>, &ReduceNarrow<kType, Reduction::kMax>};
// In the order of kNarrowTypes.
constexpr std::array kUserFunctions = {kReduce<DataType::kF16>, kReduce<DataType::kBf16>,
                                       kReduce<DataType::kF8E4M3>, kReduce<DataType::kF8E5M2>};

// By DataType. MPI_FLOAT and its like need not be constants, so this is a function and not a table.
MpiSession::TypeTable Types() {
  return {MPI_UINT16_T, MPI_UINT16_T, MPI_FLOAT,   MPI_DOUBLE,  MPI_INT8_T,
          MPI_INT32_T,  MPI_INT64_T,  MPI_UINT8_T, MPI_UINT8_T, MPI_UINT8_T};
}

Status Initialize(const MpiOptions& options) {
  int finalized = 0;
  LOCKSTEP_RETURN_IF_ERROR(FromMpi(MPI_Finalized(&finalized), "MPI_Finalized"));
  if (finalized != 0) {
    return Unsupported("mpi: MPI lives once in a process and was finalized; start a new process");
  }
  int initialized = 0;
  LOCKSTEP_RETURN_IF_ERROR(FromMpi(MPI_Initialized(&initialized), "MPI_Initialized"));
  static constexpr int kLevels[] = {MPI_THREAD_SINGLE, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
  const int wanted = kLevels[static_cast<int>(options.threads)];
  int provided = MPI_THREAD_SINGLE;
  LOCKSTEP_RETURN_IF_ERROR(
      initialized != 0
          ? FromMpi(MPI_Query_thread(&provided), "MPI_Query_thread")
          : FromMpi(MPI_Init_thread(nullptr, nullptr, wanted, &provided), "MPI_Init_thread"));
  if (provided < wanted) {
    return EnvironmentError(
        "mpi: this MPI gives thread level {} where {} is needed; use blocking operations on inline "
        "streams, or an MPI built with threads",
        provided, wanted);
  }
  return FromMpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN),
                 "MPI_Comm_set_errhandler");
}

}  // namespace

Status MpiError(int code, std::string_view call) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) length = 0;
  return SystemFailed("{}: {} (MPI error {})", call,
                      std::string_view(text, static_cast<std::size_t>(length)), code);
}

Result<std::shared_ptr<MpiSession>> MpiSession::Open(const MpiOptions& options) {
  LOCKSTEP_RETURN_IF_ERROR(Initialize(options));
  std::shared_ptr<MpiSession> session(new MpiSession(options));
  session->types_ = Types();
  LOCKSTEP_RETURN_IF_ERROR(session->CreateOps());
  return session;
}

Status MpiSession::CreateOps() {
  const std::array<MPI_Op, 4> own = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX};
  ops_.fill(own);
  for (const DataType type : kNarrowTypes) ops_[static_cast<std::size_t>(type)].fill(MPI_OP_NULL);
  for (std::size_t i = 0; i < kNarrowTypes.size(); ++i) {
    for (std::size_t r = 0; r < own.size(); ++r) {
      MPI_Op& op = ops_[static_cast<std::size_t>(kNarrowTypes[i])][r];
      LOCKSTEP_RETURN_IF_ERROR(
          FromMpi(MPI_Op_create(kUserFunctions[i][r], /*commute=*/1, &op), "MPI_Op_create"));
    }
  }
  return OkStatus();
}

MpiSession::~MpiSession() {
  if (!healthy()) return;  // ranks that wait for each other would wait here as well
  for (const DataType type : kNarrowTypes) {
    for (MPI_Op& op : ops_[static_cast<std::size_t>(type)]) {
      if (op != MPI_OP_NULL) MPI_Op_free(&op);
    }
  }
  int finalized = 0;
  if (MPI_Finalized(&finalized) == MPI_SUCCESS && finalized == 0) MPI_Finalize();
}

std::string MpiVersion() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  int major = 0;
  int minor = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS ||
      MPI_Get_version(&major, &minor) != MPI_SUCCESS) {
    return "unknown";
  }
  std::string line(text, static_cast<std::size_t>(length));
  line = line.substr(0, line.find_first_of(std::string("\n\0", 2)));
  std::replace(line.begin(), line.end(), '\t', ' ');  // MPICH's "MPICH Version:\t4.0.2"
  return fmt::format("{} (MPI {}.{})", line, major, minor);
}

}  // namespace lockstep::comm::mpi
