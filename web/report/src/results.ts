// The document that a study writes (docs/formats/results.md), read leniently: missing entries are empty, unknown ones
// are ignored.

export interface AxisSpec {
  label: string;
  log: boolean;
  /** The smallest value that a log axis shows; smaller values of a density are drawn below it. */
  floor?: number;
  min?: number;
  max?: number;
}

export type Style = "solid" | "dashed" | "points";
export type Kind = "line" | "scatter" | "bar" | "density";

export interface Series {
  name: string;
  /** Decides the color: the same group has the same color in every figure. */
  group: string;
  style: Style;
  x: (number | string)[];
  y: (number | null)[];
  low?: (number | null)[];
  high?: (number | null)[];
  /** The indices of points with hollow markers; the others then have filled ones, on dashed lines as well. */
  hollow?: number[];
  /** It belongs to the series before it: both are one entry of the legend. */
  companion: boolean;
  /** The places on the figure's other axes. */
  otherX: (number | null)[][];
  /** What `y` was before it was smoothed. */
  measured?: (number | null)[];
}

export interface Figure {
  id: string;
  title: string;
  caption: string;
  kind: Kind;
  x: AxisSpec;
  /** Horizontal axes that the reader can choose instead. */
  otherX: AxisSpec[];
  y: AxisSpec;
  series: Series[];
  notes: string[];
  /** The legend's note for a line that ends before its x values do. */
  ended: string;
  /** On the page, from 1. The parts of one figure share it. */
  number: number;
  /** Of a figure in parts: the first one's id, and what this one alone shows. */
  partOf: string;
  part: string;
}

export type Cell = string | number | boolean | null;

export interface Table {
  id: string;
  title: string;
  caption: string;
  columns: string[];
  rows: Cell[][];
}

export type Status = "supported" | "contradicted" | "smaller" | "undecided" | "untestable";

/** A mean with its 95% interval over seeds. */
export interface Effect {
  mean: number | null;
  low: number | null;
  high: number | null;
  seeds: number;
}

export interface Verdict {
  id: string;
  claim: string;
  source: string;
  verdict: Status;
  setting: string;
  quantity: string;
  effect: Effect;
  rule: string;
  reason: string;
  evidence: string;
  figure: string;
}

export interface Results {
  title: string;
  /** What the page is about: "study", "training runs". */
  subject: string;
  subtitle: string;
  command: string;
  created: string;
  version: string;
  summary: string[];
  settings: { group: string; items: [string, string][] }[];
  verdicts: Verdict[];
  figures: Figure[];
  tables: Table[];
}

type Raw = Record<string, unknown>;

const text = (value: unknown): string => {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
};
/** Text for people: hyphens before numbers become minus signs. */
const prose = (value: unknown): string => text(value).replace(/(^|[\s(])-(?=\d)/g, "$1\u2212");
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const object = (value: unknown): Raw => (typeof value === "object" && value !== null ? (value as Raw) : {});
const objects = (value: unknown): Raw[] => list(value).map(object);
const finite = (value: unknown): number | null =>
  typeof value === "number" && Number.isFinite(value) ? value : null;
const oneOf = <T extends string>(value: unknown, allowed: readonly T[], otherwise: T): T =>
  allowed.includes(value as T) ? (value as T) : otherwise;

function readAxis(raw: unknown): AxisSpec {
  const axis = object(raw);
  return {
    label: text(axis.label),
    log: axis.log === true,
    floor: finite(axis.floor) ?? undefined,
    min: finite(axis.min) ?? undefined,
    max: finite(axis.max) ?? undefined,
  };
}

function readSeries(raw: Raw, axes: number): Series {
  const y = list(raw.y).map(finite);
  const x = list(raw.x).map((value) => (typeof value === "number" ? value : text(value)));
  const band = (value: unknown) => (Array.isArray(value) && value.length === y.length ? value.map(finite) : undefined);
  const low = band(raw.low);
  const high = band(raw.high);
  return {
    name: text(raw.name),
    group: text(raw.group) || text(raw.name),
    style: oneOf(raw.style, ["solid", "dashed", "points"], "solid"),
    x: x.length >= y.length ? x.slice(0, y.length) : y.map((_, index) => index),
    y,
    low: high && low,
    high: low && high,
    hollow: Array.isArray(raw.hollow) ? raw.hollow.map(Number) : undefined,
    companion: raw.companion === true,
    otherX: Array.from({ length: axes }, (_, axis) => {
      const at = list(list(raw.other_x)[axis]);
      return y.map((_, index) => finite(at[index]));
    }),
  };
}

/** Also accepts the words of older documents. */
function readStatus(word: unknown): Status {
  if (word === "confirmed") return "supported";
  if (word === "no effect of that size") return "smaller";
  if (word === "this setting cannot test it") return "untestable";
  return oneOf(word, ["supported", "contradicted", "undecided"], "undecided");
}

function readEffect(raw: Raw): Effect {
  return { mean: finite(raw.mean), low: finite(raw.low), high: finite(raw.high), seeds: finite(raw.seeds) ?? 0 };
}

function readCell(cell: unknown): Cell {
  if (typeof cell === "number" || typeof cell === "boolean") return cell;
  return cell === null || cell === undefined ? null : text(cell);
}

function numbered(figures: Figure[]): Figure[] {
  let number = 0;
  figures.forEach((figure, index) => {
    if (figure.partOf === "" || figure.partOf !== figures[index - 1]?.partOf) ++number;
    figure.number = number;
  });
  return figures;
}

export function readResults(document: unknown): Results {
  const raw = object(document);
  return {
    title: text(raw.title) || "Study",
    subject: text(raw.subject) || "study",
    subtitle: prose(raw.subtitle),
    command: text(raw.command),
    created: text(raw.created),
    version: text(raw.plumb_version),
    summary: list(raw.summary).map(prose),
    settings: objects(raw.settings).map((group) => ({
      group: text(group.group),
      items: list(group.items).map(list).map((item) => [text(item[0]), text(item[1])] as [string, string]),
    })).filter((group) => group.items.length > 0),
    verdicts: objects(raw.verdicts).map((verdict, index) => ({
      id: text(verdict.id) || `v${index + 1}`,
      claim: prose(verdict.claim),
      source: text(verdict.source),
      verdict: readStatus(verdict.verdict),
      setting: text(verdict.setting),
      quantity: prose(verdict.quantity),
      effect: readEffect(object(verdict.effect)),
      rule: text(verdict.rule),
      reason: prose(verdict.reason),
      evidence: prose(verdict.evidence),
      figure: text(verdict.figure),
    })),
    figures: numbered(objects(raw.figures).map((figure, index) => ({
      id: text(figure.id) || `figure${index + 1}`,
      title: text(figure.title),
      caption: prose(figure.caption),
      kind: oneOf(figure.kind, ["line", "scatter", "bar", "density"], "line"),
      x: readAxis(figure.x),
      otherX: objects(figure.other_x).map(readAxis),
      y: readAxis(figure.y),
      series: objects(figure.series).map((series) => readSeries(series, objects(figure.other_x).length)),
      notes: list(figure.notes).map(prose),
      ended: text(figure.ended) || "diverged",
      number: 0,
      partOf: text(figure.part_of),
      part: text(figure.part),
    }))),
    tables: objects(raw.tables).map((table, index) => ({
      id: text(table.id) || `table${index + 1}`,
      title: text(table.title),
      caption: prose(table.caption),
      columns: list(table.columns).map(text),
      rows: list(table.rows).map((row) => list(row).map(readCell)),
    })),
  };
}
