/** Widths that everything in a pane shares, so that all pictures have one axis. */

/** The labels at the left. */
export const GUTTER = 208;

/** The scroll bar's place at the right. */
export const RIGHT = 12;

export const HEAT_HEIGHT = 96;
export const DIFFERENCE_HEIGHT = 26;
