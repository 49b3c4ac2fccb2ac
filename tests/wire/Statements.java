import java.sql.*;

/** Statements of one connection, each with its rows or with why it was refused. */
public class Statements {
    public static void main(String[] given) throws Exception {
        try (Connection connection = DriverManager.getConnection(given[0], "anna", given[1])) {
            for (int place = 2; place < given.length; place++)
                try (Statement asked = connection.createStatement()) {
                    StringBuilder line = new StringBuilder("rows:");
                    if (asked.execute(given[place])) {
                        ResultSet found = asked.getResultSet();
                        while (found.next())
                            for (int column = 1; column <= found.getMetaData().getColumnCount(); column++)
                                line.append(' ').append(found.getString(column));
                    }
                    System.out.println(line);
                } catch (SQLException wrong) {
                    System.out.println("refused: " + wrong.getSQLState());
                }
        }
    }
}
