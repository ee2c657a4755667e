"""What results look like: tables, the terminal, figures, the report."""
