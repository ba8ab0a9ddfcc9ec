// A table: a one-dimensional compound dataset whose texts have fixed lengths, so that any reader
// (h5py, pandas, h5dump) takes it whole.
#pragma once

#include <hdf5.h>

#include <cstddef>
#include <string>
#include <vector>

#include "core/hdf5/handle.h"
#include "results/store/fields.h"
#include "results/store/schema.h"

namespace lockstep::results::store {

struct Column {
  std::string name;
  Value like;
  std::string units;
  // Of a cell; a text column is as wide as its longest text, at least 1. 0: the file lacks it.
  std::size_t bytes = 0;
  bool later = false;  // the file may lack it
};

// Rows of values, column by column; what tables are written from and read into.
struct Cells {
  std::vector<Column> columns;
  std::vector<Value> values;  // rows x columns
  std::size_t rows() const { return columns.empty() ? 0 : values.size() / columns.size(); }
};

void WriteCells(hdf5::File& file, const std::string& path, Cells cells);
// Fills `cells.values` for `cells.columns`; columns of the file that are not asked for are passed
// over; ones that are missing are an error, or, where they came later, have the value `like`.
void ReadCells(hdf5::File& file, const std::string& path, Cells& cells);

// Collects the values of described rows.
class CellSink : public ValueSink {
 public:
  void Put(const char* name, const Value& value, const char* units) override {
    if (naming_)
      cells.columns.push_back({name, value, units, 0});
    else
      cells.values.push_back(value);
  }
  void PutLater(const char* name, const Value& value) override {
    Put(name, value, "");
    if (naming_) cells.columns.back().later = true;
  }
  void NameColumns(bool naming) { naming_ = naming; }
  Cells cells;

 private:
  bool naming_ = false;
};

// Hands the values of read rows out again, in the order of the description.
class CellSource : public ValueSource {
 public:
  CellSource(const Cells& cells, std::string path, hdf5::File& file)
      : cells_(cells), path_(std::move(path)), file_(file) {}
  Value Get(const char*, const Value&) override { return cells_.values[next_++]; }
  void Refuse(const char* name, const Value& value) override;

 private:
  const Cells& cells_;
  std::string path_;
  hdf5::File& file_;
  std::size_t next_ = 0;
};

template <typename Row>
Cells CellsOf(const std::vector<Row>& rows) {
  CellSink sink;
  Writing writing(sink);
  const Row prototype{};
  sink.NameColumns(true);
  Describe(writing, prototype);
  sink.NameColumns(false);
  for (const Row& row : rows) Describe(writing, row);
  return std::move(sink.cells);
}

template <typename Row>
void WriteTable(hdf5::File& file, const std::string& path, const std::vector<Row>& rows) {
  WriteCells(file, path, CellsOf(rows));
}

template <typename Row>
std::vector<Row> ReadTable(hdf5::File& file, const std::string& path) {
  Cells cells = CellsOf(std::vector<Row>());
  ReadCells(file, path, cells);
  std::vector<Row> rows(file.ok() ? cells.rows() : 0);
  CellSource source(cells, path, file);
  Reading reading(source);
  for (Row& row : rows) Describe(reading, row);
  return rows;
}

}  // namespace lockstep::results::store
