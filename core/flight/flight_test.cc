// Dumps as documents: what is read, what is refused, what rubbish does.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "core/flight/diagnosis.h"
#include "core/flight/document.h"
#include "core/flight/dump.h"
#include "core/flight/job.h"
#include "core/flight/pickle_writer.h"

namespace lockstep::flight {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = FlightValue::Kind;

std::string Bytes(std::initializer_list<const char*> parts) {
  std::string bytes = "\x80\x04";
  for (const char* part : parts) bytes += part;
  return bytes + ".";
}

std::string ErrorOf(const std::string& bytes) {
  const Result<FlightDocument> document = ReadPickle(bytes, "dump");
  return document.ok() ? "" : document.status().message();
}

TEST(PickleTest, ReadsWhatTheWriterWrote) {
  PickleWriter writer;
  writer.BeginDictionary();
  writer.Text("numbers");
  writer.BeginList();
  const std::vector<std::int64_t> numbers = {0,       255,          256,       -1,
                                             1 << 30, -(1LL << 40), 1LL << 62, INT64_MIN};
  for (const std::int64_t number : numbers) writer.Integer(number);
  writer.EndList();
  writer.Text("others");
  writer.BeginList();
  writer.None();
  writer.Bool(true);
  writer.Real(-0.1);
  writer.Text("numbers");
  writer.Pair("a", "ä");
  writer.EndList();
  writer.EndDictionary();
  const Result<FlightDocument> document = ReadPickle(writer.Take(), "dump");
  ASSERT_TRUE(document.ok()) << document.status().message();
  const auto& root = document->DictionaryOf(document->root);
  ASSERT_EQ(root.size(), 2u);
  const auto& read = document->ListOf(root[0].second);
  ASSERT_EQ(read.size(), numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(read[i].integer, numbers[i]);
  const auto& others = document->ListOf(root[1].second);
  ASSERT_EQ(others.size(), 5u);
  EXPECT_TRUE(others[0].Is(Kind::kNone));
  EXPECT_TRUE(others[1].Is(Kind::kBool) && others[1].integer == 1);
  EXPECT_EQ(others[2].real, -0.1);
  EXPECT_EQ(others[3].AsText(), "numbers");
  EXPECT_EQ(document->ListOf(others[4])[1].AsText(), "ä");
}

// As Python prints it, but for tuples and sets, which are lists.
std::string Shown(const FlightDocument& document, const FlightValue& value) {
  std::string text;
  switch (value.kind) {
    case FlightValue::Kind::kNone:
      return "None";
    case FlightValue::Kind::kBool:
      return value.integer != 0 ? "True" : "False";
    case FlightValue::Kind::kInteger:
      return fmt::format("{}", value.integer);
    case FlightValue::Kind::kReal:
      return fmt::format("{}", value.real);
    case FlightValue::Kind::kText:
      return fmt::format("'{}'", value.AsText());
    case FlightValue::Kind::kList:
      for (const FlightValue& item : document.ListOf(value)) text += Shown(document, item) + " ";
      return fmt::format("[{}]", text.substr(0, text.empty() ? 0 : text.size() - 1));
    case FlightValue::Kind::kDictionary:
      for (const auto& [key, item] : document.DictionaryOf(value)) {
        text += fmt::format("{}: {}", Shown(document, key), Shown(document, item));
      }
      return fmt::format("{{{}}}", text);
  }
  return "?";
}

TEST(PickleTest, EveryOpcodeOfDataMeansWhatPythonSays) {
  using namespace std::string_literals;
  const std::pair<std::string, const char*> kBodies[] = {
      {"N", "None"},
      {"\x88", "True"},
      {"\x89", "False"},
      {"J\xfe\xff\xff\xff", "-2"},
      {"K\xff", "255"},
      {"M\x01\x02", "513"},
      {"\x8a\x01\xff", "-1"},
      {"\x8a\x09\xff\x00\x00\x00\x00\x00\x00\x00\x00"s, "255"},
      {"\x8b\x01\x00\x00\x00\x7f"s, "127"},
      {"G\x3f\xf8\x00\x00\x00\x00\x00\x00"s, "1.5"},
      {"U\x02hi", "'hi'"},
      {"C\x02hi", "'hi'"},
      {"\x8c\x02hi", "'hi'"},
      {"X\x02\x00\x00\x00hi"s, "'hi'"},
      {"T\x02\x00\x00\x00hi"s, "'hi'"},
      {"B\x02\x00\x00\x00hi"s, "'hi'"},
      {"\x8d\x02\x00\x00\x00\x00\x00\x00\x00hi"s, "'hi'"},
      {"\x8e\x02\x00\x00\x00\x00\x00\x00\x00hi"s, "'hi'"},
      {"\x96\x02\x00\x00\x00\x00\x00\x00\x00hi"s, "'hi'"},
      {"]", "[]"},
      {"\x8f", "[]"},
      {")", "[]"},
      {"(K\x01K\x02l", "[1 2]"},
      {"(K\x01K\x02t", "[1 2]"},
      {"(K\x01K\x02\x91", "[1 2]"},
      {"K\x01\x85", "[1]"},
      {"K\x01K\x02\x86", "[1 2]"},
      {"K\x01K\x02K\x03\x87", "[1 2 3]"},
      {"]K\x01"
       "a",
       "[1]"},
      {"](K\x01K\x02"
       "e",
       "[1 2]"},
      {"\x8f(K\x01K\x02\x90", "[1 2]"},
      {"}", "{}"},
      {"(K\x01K\x02"
       "d",
       "{1: 2}"},
      {"}K\x01K\x02s", "{1: 2}"},
      {"}(K\x01K\x02u", "{1: 2}"},
      {"K\x01K\x02"
       "0",
       "1"},
      {"K\x01(K\x02K\x03"
       "1",
       "1"},
      {"K\x01"
       "2\x86",
       "[1 1]"},
      {"\x95\x02\x00\x00\x00\x00\x00\x00\x00N"s, "None"},
      {"K\x07q\x00"
       "0h\x00"s,
       "7"},
      {"K\x07r\x00\x00\x00\x00"
       "0j\x00\x00\x00\x00"s,
       "7"},
      {"K\x07\x94"
       "0h\x00"s,
       "7"},
  };
  for (const auto& [body, expected] : kBodies) {
    const Result<FlightDocument> document = ReadPickle("\x80\x04" + body + ".", "dump");
    ASSERT_TRUE(document.ok()) << expected << ": " << document.status().message();
    EXPECT_EQ(Shown(*document, document->root), expected) << testing::PrintToString(body);
  }
}

TEST(PickleTest, RefusesEveryOpcodeThatAsksForCode) {
  for (const auto& [opcode, name] :
       std::vector<std::pair<const char*, const char*>>{{"cos\nsystem\n", "GLOBAL"},
                                                        {"\x93", "STACK_GLOBAL"},
                                                        {"R", "REDUCE"},
                                                        {"b", "BUILD"},
                                                        {"ios\nsystem\n", "INST"},
                                                        {"o", "OBJ"},
                                                        {"\x81", "NEWOBJ"},
                                                        {"\x92", "NEWOBJ_EX"},
                                                        {"\x82\x01", "EXT1"},
                                                        {"\x83\x01\x01", "EXT2"},
                                                        {"\x84\x01\x01\x01\x01", "EXT4"},
                                                        {"P1\n", "PERSID"},
                                                        {"Q", "BINPERSID"},
                                                        {"\x97", "NEXT_BUFFER"},
                                                        {"\x98", "READONLY_BUFFER"}}) {
    const std::string error = ErrorOf(Bytes({"N", opcode}));
    EXPECT_THAT(error, HasSubstr(std::string("dump: opcode ") + name + " at offset 3"));
    EXPECT_THAT(error, HasSubstr("nothing of the file was run"));
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
}

TEST(PickleTest, SaysWhatIsWrong) {
  EXPECT_THAT(ErrorOf("\x80\x04"), HasSubstr("cut off"));
  EXPECT_THAT(ErrorOf("\x80\x04X\xff\xff\xff\xff"), HasSubstr("cut off"));
  EXPECT_THAT(ErrorOf("\x80\x01N."), HasSubstr("protocol 1"));
  EXPECT_THAT(ErrorOf(Bytes({"a"})), HasSubstr("stack"));
  EXPECT_THAT(ErrorOf(Bytes({"e"})), HasSubstr("mark"));
  EXPECT_THAT(ErrorOf(Bytes({"NNa"})), HasSubstr("no list"));
  EXPECT_THAT(ErrorOf(Bytes({"}(Nu"})), HasSubstr("without a value"));
  EXPECT_THAT(ErrorOf(Bytes({"h\x05"})), HasSubstr("memo"));
  EXPECT_THAT(ErrorOf(Bytes({"Nq\x05"})), HasSubstr("memo"));
  EXPECT_THAT(ErrorOf(Bytes({"NN"})), HasSubstr("more than one value"));
  EXPECT_THAT(ErrorOf(Bytes({"I1\n"})), HasSubstr("0x49"));
  EXPECT_THAT(ErrorOf(Bytes({"](Na"})), HasSubstr("stack"));  // not across a mark
}

TEST(PickleTest, BoundsWhatItBuilds) {
  const std::string lists = "\x80\x04(" + std::string(5'000'000, ']') + "l.";
  EXPECT_THAT(ErrorOf(lists), HasSubstr("too many lists"));
}

TEST(DumpTest, AnErrorIsOneLineWhateverTheDumpSays) {
  FlightTexts texts;
  const auto dump = ReadFlightDump("{\"version\": \"\\n9.\\u0007x\"}", 0, "dump", texts);
  ASSERT_FALSE(dump.ok());
  EXPECT_THAT(dump.status().message(), HasSubstr("dump: says a version that is no number, so"));
}

TEST(JsonTest, BoundsItsDepth) {
  EXPECT_TRUE(ReadJsonDocument(R"({"a": [1, 2.5, null, true, "x"]})", "dump").ok());
  const std::string deep(100'000, '[');
  const Result<FlightDocument> document = ReadJsonDocument(deep, "dump");
  ASSERT_FALSE(document.ok());
  EXPECT_THAT(document.status().message(), HasSubstr("deep"));
  EXPECT_FALSE(ReadJsonDocument("{\"a\": ", "dump").ok());
}

std::vector<std::pair<std::string, std::string>> RealDumps() {
  std::vector<std::pair<std::string, std::string>> dumps;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("core/flight/testdata")) {
    if (!entry.is_regular_file() || entry.path().extension() == ".md") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    dumps.emplace_back(entry.path().string(),
                       std::string(std::istreambuf_iterator<char>(file), {}));
  }
  return dumps;
}

// Whatever it is: an error of one line, or a judgement.
bool Survives(const std::string& bytes) {
  FlightTexts texts;
  Result<FlightDump> dump = ReadFlightDump(bytes, 0, "dump", texts);
  if (!dump.ok()) {
    EXPECT_TRUE(dump.status().message().starts_with("dump: ")) << dump.status().message();
    EXPECT_EQ(dump.status().message().find('\n'), std::string::npos);
    return false;
  }
  std::vector<FlightDump> dumps;
  dumps.push_back(std::move(*dump));
  const Result<FlightJob> job = FlightJobOf(std::move(texts), std::move(dumps));
  EXPECT_TRUE(job.ok());
  const Result<FlightDiagnosis> diagnosis = DiagnoseFlight(*job, 30);
  EXPECT_TRUE(diagnosis.ok());
  return true;
}

TEST(DumpTest, GroupsOfWhichNobodyIsHere) {
  EXPECT_TRUE(Survives(R"({"version": "2.10", "pg_config": {
      "0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"},
      "7": {"name": "7", "desc": "other", "ranks": "[5, 6]"}}, "entries": [
      {"process_group": ["0", "default_pg"], "collective_seq_id": 1, "state": "scheduled",
       "profiling_name": "nccl:all_reduce", "record_id": 0, "time_created_ns": 1,
       "timeout_ms": 9223372036854775807, "retired": true}]})"));
  EXPECT_FALSE(Survives(R"({"version": "2.10", "entries": [
      {"process_group": ["0", "default_pg"], "collective_seq_id": 9223372036854775807,
       "state": "scheduled", "profiling_name": "nccl:all_reduce"}]})"));
}

// Of all_reduces of the default group, by their numbers.
std::vector<std::uint64_t> SequencesOf(const std::vector<int>& called) {
  std::string entries;
  for (const int number : called) {
    entries += fmt::format(R"({}{{"process_group": ["0", "default_pg"], "collective_seq_id": {},
        "state": "completed", "profiling_name": "nccl:all_reduce"}})",
                           entries.empty() ? "" : ",", number);
  }
  FlightTexts texts;
  const Result<FlightDump> dump =
      ReadFlightDump(R"({"version": "2.10", "entries": [)" + entries + "]}", 0, "dump", texts);
  EXPECT_TRUE(dump.ok()) << dump.status().message();
  std::vector<std::uint64_t> sequences;
  for (const FlightCall& call : dump->calls) sequences.push_back(call.sequence);
  return sequences;
}

// A group that was destroyed and made anew has its name, and counts from the beginning.
TEST(DumpTest, CallsOfAGroupThatWasMadeAnewAreLeftOut) {
  EXPECT_THAT(SequencesOf({7, 8, 9, 1, 2}), ElementsAre(1, 2));
  EXPECT_THAT(SequencesOf({1, 2, 3, 2, 1}), ElementsAre(2, 1)) << "threads at once";
  EXPECT_THAT(SequencesOf({1, 2, 1}), ElementsAre(1)) << "no group calls its first one twice";
  EXPECT_THAT(SequencesOf({5, 7, 6, 8}), ElementsAre(5, 7, 6, 8));
}

std::string WithSizes(const std::string& sizes, const std::string& types) {
  return R"({"version": "2.10", "entries": [{"process_group": ["0", "default_pg"],
      "collective_seq_id": 1, "state": "scheduled", "profiling_name": "nccl:all_reduce",
      "input_sizes": )" +
         sizes + R"(, "input_dtypes": )" + types + "}]}";
}

TEST(DumpTest, SizesAreCountedAndShown) {
  FlightTexts texts;
  const auto argument = [&](const std::string& sizes, const std::string& types) {
    const Result<FlightDump> dump = ReadFlightDump(WithSizes(sizes, types), 0, "dump", texts);
    if (!dump.ok()) return dump.status().message();
    const FlightCall& call = dump->calls.front();
    return std::string(texts.TextOf(call.arguments)) + " = " + std::to_string(call.input_elements);
  };
  EXPECT_EQ(argument("[[2, 3]]", R"(["Float"])"), "Float[2, 3] = 6");
  EXPECT_EQ(argument("[[2], [4, 0]]", R"(["Float", "Long"])"), "Float[2], Long[4, 0] = 2");
  EXPECT_EQ(argument("[[1], [1], [1], [1], [5], [1]]", R"(["Half"])"),
            "Half[1], Half[1], Half[1], Half[1] and 2 more = 10");
  EXPECT_THAT(argument("[2]", "[]"), HasSubstr("has sizes that are no lists"));
  EXPECT_THAT(argument("[[-1]]", "[]"), HasSubstr("has wrong sizes"));
  EXPECT_THAT(argument("[[1152921504606846976, 2]]", "[]"), HasSubstr("beyond all memory"));
  EXPECT_THAT(argument("[[1152921504606846976], [1]]", "[]"), HasSubstr("beyond all memory"));
}

TEST(FuzzTest, RealDumpsAreRead) {
  const auto dumps = RealDumps();
  ASSERT_GE(dumps.size(), 30u);
  for (const auto& [name, bytes] : dumps) EXPECT_TRUE(Survives(bytes)) << name;
}

TEST(FuzzTest, CutOffDumpsAreErrors) {
  for (const auto& [name, bytes] : RealDumps()) {
    for (std::size_t size = 0; size < bytes.size(); size += 1 + bytes.size() / 200) {
      EXPECT_FALSE(Survives(bytes.substr(0, size))) << name << " cut to " << size;
    }
  }
}

TEST(FuzzTest, FlippedBytesAreErrorsOrData) {
  const unsigned seed = std::random_device{}();
  std::cout << "seed " << seed << "\n";
  std::mt19937 random(seed);
  int read = 0, refused = 0;
  const auto dumps = RealDumps();
  for (int round = 0; round < 4000; ++round) {
    std::string bytes = dumps[random() % dumps.size()].second;
    const std::size_t flips = 1 + random() % 8;
    for (std::size_t i = 0; i < flips; ++i) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    if (random() % 4 == 0) bytes.erase(random() % bytes.size(), 1 + random() % 16);
    (Survives(bytes) ? read : refused) += 1;
  }
  EXPECT_GT(read, 100);
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace lockstep::flight
