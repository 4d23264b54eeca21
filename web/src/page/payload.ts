/** Types of the data in a report, as foci.reports.data.payload writes it. */

export type View = "prediction" | "label";

/** Bits per number, count of numbers, and the numbers in base64. */
export type Packed = [bits: number, length: number, base64: string];

export interface Interval {
  estimate: number | null;
  low: number | null;
  high: number | null;
}

export interface Steps {
  ks: number[];
  mean: (number | null)[];
}

export interface MeanCurve extends Steps {
  low: (number | null)[];
  high: (number | null)[];
}

export interface Numbers {
  msk_cond: Interval;
  restricted: Interval;
  reach: Interval;
  mean_curve: MeanCurve;
  km: { ks: number[]; survival: number[] };
  drops: Steps;
  selected_only: { k: number; auc: number | null; adaptive_auc: number | null } | null;
}

export interface Verdict {
  verdict: string;
  sentence: string;
  room: Interval;
  gain_over_native: Interval;
  gain_over_random: Interval;
  random_over_native: Interval;
  margin: number;
}

/** A ranking and the columns (one per seed) under which its orders are stored. */
export interface RankingFacts {
  name: string;
  columns: string[];
}

/** Metrics of one ranking, one entry per slide, averaged over seeds. */
export interface Measures {
  k: number[];
  reach: number[];
  aukc: number[];
  faithfulness: (number | null)[];
}

export interface SlideColumns {
  id: string[];
  case: string[];
  label: (number | null)[];
  predicted: number[];
  p: number[];
  n: number[];
  measures: Partial<Record<View, Record<string, Measures>>>;
}

export interface Placement {
  x: Packed;
  y: Packed;
  origin: [number, number];
  step: number;
  side: number;
  exact: boolean;
}

export interface ViewDetail {
  curves: Record<string, Packed>;
  random: { low: Packed; mean: Packed; high: Packed } | null;
  msk: Record<string, number | null>;
}

export interface Detail {
  ks: number[] | null;
  unit: string;
  placement: Placement | null;
  tiles: Packed | null;
  orders: Record<string, Packed>;
  views: Partial<Record<View, ViewDetail>>;
}

export interface AuditPayload {
  kind: "audit";
  classes: string[];
  kappa: number;
  k_max: number;
  first_view: View;
  rankings: RankingFacts[];
  headline: string;
  full_auc: number | null;
  numbers: Partial<Record<View, Record<string, Numbers>>>;
  verdict: Verdict | null;
  ks: number[];
  slides: SlideColumns;
  details: Record<string, Detail>;
}

export interface ComparedAudit {
  name: string;
  verdict: string | null;
  auc: number | null;
  shi_native: Interval | null;
  shi_random: Interval | null;
  restricted: Record<string, Interval>;
}

export interface ComparisonPayload {
  kind: "comparison";
  rankings: string[];
  k_max: number;
  audits: ComparedAudit[];
}

export type Payload = AuditPayload | ComparisonPayload;

export function readPayload(): Payload {
  return JSON.parse(document.getElementById("foci-data")!.textContent!) as Payload;
}
