"""The table of a finished sweep: its rows in order, in row groups, so that it needs the memory of one of them."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from schedlab._native import InputError
from schedlab.output import replacing

ENDINGS = (".parquet", ".arrows")

# The rows of a row group. It decides the bytes of the file, and so does nothing else but the rows.
_GROUP = 1 << 16


def write(target: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch], metadata: Mapping[bytes, bytes]) -> None:
    """Write a table to a file, which is there only when it is complete."""
    schema = schema.with_metadata(dict(metadata))
    try:
        with replacing(target) as draft, draft.open("wb") as file:
            if target.suffix == ".parquet":
                with pq.ParquetWriter(file, schema, compression="zstd") as parquet:
                    for group in _groups(schema, batches):
                        parquet.write_table(group, row_group_size=_GROUP)
            else:
                options = pa.ipc.IpcWriteOptions(compression="zstd")
                with pa.ipc.new_stream(file, schema, options=options) as stream:
                    for group in _groups(schema, batches):
                        stream.write_table(group, max_chunksize=_GROUP)
    except OSError as error:
        raise InputError(f"{target}: cannot write it: {error.strerror or error}; the rows are kept") from None


def _groups(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Give the rows in tables of equal size, however they came."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        while rows >= _GROUP:
            table = pa.Table.from_batches([own.replace_schema_metadata(schema.metadata) for own in waiting])
            yield table.slice(0, _GROUP).combine_chunks()
            waiting = table.slice(_GROUP).to_batches()
            rows -= _GROUP
    if rows:
        yield pa.Table.from_batches([own.replace_schema_metadata(schema.metadata) for own in waiting]).combine_chunks()
